#include "platforms/support/child.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace fomoe::sim {

namespace {

void write_all(int descriptor, const std::string& text) {
  const char* at = text.data();
  std::size_t left = text.size();
  while (left > 0) {
    const ssize_t written = ::write(descriptor, at, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) std::_Exit(1);  // the parent is gone
    at += written;
    left -= static_cast<std::size_t>(written);
  }
}

std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

void reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

Child::Child(const std::function<std::string()>& work) {
  int ends[2];
  messages_ = std::tmpfile();
  if (messages_ == nullptr || pipe(ends) != 0) throw std::runtime_error("cannot prepare a child process");
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork a child process");
  if (pid_ == 0) {
    close(ends[0]);
    dup2(fileno(messages_), STDERR_FILENO);
    for (const int death : {SIGSEGV, SIGABRT})
      signal(death, SIG_DFL);  // the parent's handlers must not run in the child
    try {
      write_all(ends[1], 'k' + work());
    } catch (const std::exception& error) {
      write_all(ends[1], std::string("e") + error.what());
    }
    std::_Exit(0);  // SimGrid's own tear-down is slow, and nothing here outlives the process
  }
  close(ends[1]);
  reader_ = ends[0];
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      reader_(std::exchange(other.reader_, -1)),
      messages_(std::exchange(other.messages_, nullptr)) {}

Child::~Child() {
  if (reader_ >= 0) close(reader_);
  if (messages_ != nullptr) std::fclose(messages_);
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  reap(pid_);
}

std::string Child::wait() {
  const std::string answer = read_all(reader_);
  reap(std::exchange(pid_, -1));
  if (!answer.empty() && answer.front() == 'k') return answer.substr(1);
  if (!answer.empty()) throw ChildError(answer.substr(1), true);
  std::rewind(messages_);
  throw ChildError(read_all(fileno(messages_)), false);
}

}  // namespace fomoe::sim
