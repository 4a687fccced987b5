#include "experiments/probe/external_program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace fomoe::probe {

namespace {

constexpr int kCannotStart = 127;

/// Runs in the new process. It makes only system calls until the program starts, because other threads of the
/// parent may have held locks at the fork.
[[noreturn]] void become(char* const* arguments, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotStart);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execv(arguments[0], arguments);
  ::_exit(kCannotStart);
}

}  // namespace

ExternalProgram::ExternalProgram(const std::vector<std::string>& command) {
  const std::string program = program_on_path(command.front());
  if (program.empty()) throw std::runtime_error(command.front() + " is not on PATH");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error(std::strerror(errno));
  pipe_ = Descriptor(ends[0]);
  const Descriptor output(ends[1]);
  std::vector<std::string> words = command;
  words.front() = program;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error(std::strerror(errno));
  if (process_ == 0) become(arguments.data(), output.get(), parent);
}

ExternalProgram::~ExternalProgram() {
  if (ended_) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void ExternalProgram::kill() {
  const std::lock_guard lock(ending_);
  if (!ended_) ::kill(process_, SIGKILL);
}

bool ExternalProgram::read_some(double until_s) {
  if (!readable(pipe_, until_s)) return false;
  std::array<char, 65536> buffer{};
  const ssize_t size = ::read(pipe_.get(), buffer.data(), buffer.size());
  if (size < 0) return errno == EINTR;
  output_.append(buffer.data(), static_cast<std::size_t>(size));
  output_ended_ = size == 0;
  return size > 0;
}

bool ExternalProgram::wait_for_end(double until_s) {
  while (!output_ended_ && read_some(until_s)) {
  }
  return output_ended_;
}

bool ExternalProgram::wait_for_output(const std::string& text, double until_s) {
  while (output_.find(text) == std::string::npos) {
    if (!read_some(until_s)) return output_.find(text) != std::string::npos;
  }
  return true;
}

std::optional<int> ExternalProgram::wait(double until_s) {
  (void)wait_for_end(until_s);
  for (bool killed = false;;) {
    {
      const std::lock_guard lock(ending_);
      int status = 0;
      if (::waitpid(process_, &status, WNOHANG) == process_) {
        ended_ = true;
        if (killed) return std::nullopt;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
    }
    if (!killed && now_s() >= until_s) {
      kill();
      killed = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::string program_on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = (folder.empty() ? "." : folder) + '/' + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

}  // namespace fomoe::probe
