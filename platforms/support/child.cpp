#include "platforms/support/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace fomoe {

namespace {

std::string read_all(std::FILE* file) {
  std::rewind(file);
  std::string text;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, got);
  return text;
}

/// Runs in the child. An exception's message replaces everything that the child has written to stderr.
[[noreturn]] void run(const std::function<void(ChildOutput&)>& work, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends a stopped process too, which no other signal does
  if (::getppid() != parent) std::_Exit(1);
  for (const int death : {SIGSEGV, SIGABRT})
    ::signal(death, SIG_DFL);  // the parent's handlers must not run in the child
  try {
    ChildOutput to_parent(output);
    work(to_parent);
  } catch (const std::exception& error) {
    if (::ftruncate(STDERR_FILENO, 0) == 0) ::lseek(STDERR_FILENO, 0, SEEK_SET);
    std::fputs(error.what(), stderr);
    std::_Exit(1);
  }
  std::_Exit(0);  // SimGrid's own tear-down is slow, and nothing here outlives the process
}

}  // namespace

void ChildOutput::write(const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) std::_Exit(1);  // the parent is gone
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

void ChildOutput::put(const std::string& text) {
  put(std::uint64_t{text.size()});
  write(text.data(), text.size());
}

void ChildOutput::put(const std::vector<std::string>& texts) {
  std::vector<std::uint64_t> sizes;
  std::string characters;
  for (const std::string& text : texts) {
    sizes.push_back(text.size());
    characters += text;
  }
  put(sizes);
  put(characters);
}

Child::Child(const std::function<void(ChildOutput&)>& work) {
  int ends[2];
  messages_ = std::tmpfile();
  if (messages_ == nullptr || ::pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(std::string("cannot prepare a child process: ") + std::strerror(errno));
  reader_ = Descriptor(ends[0]);
  Descriptor writer(ends[1]);
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0)
    throw std::runtime_error(std::string("cannot start a child process: ") + std::strerror(errno));
  if (pid_ == 0) {
    reader_.reset();
    ::dup2(::fileno(messages_), STDERR_FILENO);
    run(work, writer.get(), parent);
  }
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      reader_(std::move(other.reader_)),
      messages_(std::exchange(other.messages_, nullptr)) {}

Child::~Child() {
  reader_.reset();
  if (pid_ >= 0) {
    ::kill(pid_, SIGKILL);
    (void)reap();
  }
  if (messages_ != nullptr) std::fclose(messages_);
}

bool Child::has_output_within(std::chrono::milliseconds time) const {
  pollfd reader{reader_.get(), POLLIN, 0};
  return ::poll(&reader, 1, static_cast<int>(time.count())) > 0;
}

void Child::read(void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(reader_.get(), at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const std::string error = reap();
      throw ChildError(error.empty() ? "a child process ended before it had answered" : error);
    }
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

void Child::get(std::string& text) {
  std::uint64_t size = 0;
  get(size);
  text.resize(size);
  read(text.data(), size);
}

void Child::get(std::vector<std::string>& texts) {
  std::vector<std::uint64_t> sizes;
  std::string characters;
  get(sizes);
  get(characters);
  texts.clear();
  std::size_t begin = 0;
  for (const std::uint64_t size : sizes) {
    texts.push_back(characters.substr(begin, size));
    begin += size;
  }
}

void Child::finish() {
  if (const std::string error = reap(); !error.empty()) throw ChildError(error);
  std::fputs(read_all(messages_).c_str(), stderr);
}

std::string Child::reap() {
  int status = 0;
  const pid_t process = std::exchange(pid_, -1);
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::string messages = read_all(messages_);
  if (!messages.empty()) return messages;
  return WIFSIGNALED(status)
             ? std::string("a child process ended with the signal ") + ::strsignal(WTERMSIG(status))
             : "a child process ended without an answer";
}

}  // namespace fomoe
