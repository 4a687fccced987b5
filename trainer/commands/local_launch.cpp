#include "trainer/commands/local_launch.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>

#include "platforms/support/descriptor.hpp"
#include "trainer/commands/shared_errors.hpp"
#include "trainer/device/cpu_share.hpp"
#include "trainer/stopping/stopping.hpp"

namespace fomoe::trainer {
namespace {

// A port that is free at this moment. If another process takes it before rank 0 opens it, rank 0 reports
// that.
int free_port() {
  const Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (probe.get() < 0 || ::bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error(std::string("cannot find a free port on this machine: ") + std::strerror(errno));
  }
  return ntohs(address.sin_port);
}

std::vector<std::string> without_local(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with("--local=")) continue;
    if (arguments[i] == "--local") {
      const bool count = i + 1 < arguments.size() && !arguments[i + 1].empty() &&
                         std::all_of(arguments[i + 1].begin(), arguments[i + 1].end(),
                                     [](unsigned char c) { return std::isdigit(c) != 0; });
      if (count) ++i;
      continue;
    }
    out.push_back(arguments[i]);
  }
  return out;
}

constexpr int kUsageStatus = 2;  // of a process that refuses its input

volatile std::sig_atomic_t terms = 0;  // how often SIGTERM has come

/// As long as it exists, SIGTERM is counted, and the processes get it.
class TermHandler {
 public:
  TermHandler() {
    handle_with([](int) { terms = terms + 1; });
  }
  ~TermHandler() { handle_with(SIG_DFL); }
  TermHandler(const TermHandler&) = delete;
  TermHandler& operator=(const TermHandler&) = delete;

 private:
  static void handle_with(void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    ::sigaction(SIGTERM, &action, nullptr);
  }
};

/// The processes of all ranks.
class Ranks {
 public:
  explicit Ranks(int processes) : processes_(processes), port_(free_port()) {}

  /// Starts all of them, and returns the exit status of the process that failed first. A process that waits
  /// forever, or that is stopped, must not keep that failure, or the end of the run, from being reported.
  /// Returns nothing in a process that was started, which is then a rank.
  std::optional<int> run(bool restart) {
    for (int rank = 0; rank < processes_; ++rank) {
      if (start(rank)) return std::nullopt;
    }
    const TermHandler handler;
    while (!ranks_.empty()) {
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, WNOHANG);
      if (ended < 0 && errno != EINTR) break;
      errors_.print();
      if (ended > 0) {
        if (const int rank = note_end(ended, status, restart); rank >= 0 && start(rank)) {
          resumes_ = true;
          return std::nullopt;
        }
        continue;
      }
      for (; terms_passed_on_ < terms; ++terms_passed_on_) {
        for (const auto& [process, rank] : ranks_) ::kill(process, SIGTERM);
      }
      if (!stopped_ && Clock::now() > ending_at_ + std::chrono::duration<double>(kPatienceS)) stop_rest();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    errors_.print();
    return failure_;
  }

  /// In a process of a rank: whether it takes the place of one that a signal ended.
  [[nodiscard]] bool resumes() const { return resumes_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Returns the rank that must be started again; −1 if none must.
  int note_end(pid_t process, int status, bool restart) {
    const int rank = ranks_.at(process);
    ranks_.erase(process);
    if (stopped_) return -1;
    const bool ends = failure_ != 0 || complete_;
    if (restart && !ends && WIFSIGNALED(status) && terms == 0) {
      std::cerr << "fomoe-train: signal " << WTERMSIG(status) << " ended rank " << rank
                << "; it is started again\n"
                << std::flush;
      return rank;
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    // A process that loses another ends with 1, and may be seen to end before the one that it lost.
    const bool is_reason = code == kUsageStatus || WIFSIGNALED(status);
    if (failure_ == 0 || (failure_ == 1 && is_reason)) failure_ = code;
    if (restart && rank == 0 && code == 0) complete_ = true;
    // Processes that SIGTERM stops have a limit of their own (--stop-within).
    const bool stopping = terms > 0 || (WIFEXITED(status) && code == kStoppedStatus);
    if (!ends && !stopping && (failure_ != 0 || complete_)) ending_at_ = Clock::now();
    return -1;
  }

  void stop_rest() {
    for (const auto& [process, rank] : ranks_) {
      std::cerr << "fomoe-train: stopped rank " << rank << ", which "
                << (failure_ == 0 ? "came back after the run had ended\n"
                                  : "was still waiting for a site that has ended\n")
                << std::flush;
      ::kill(process, SIGKILL);
    }
    stopped_ = true;
  }

  /// Returns true in the process that it starts.
  bool start(int rank) {
    std::cout << std::flush;  // what waits to be written must not be written by both processes
    std::cerr << std::flush;
    const pid_t parent = ::getpid(), child = ::fork();
    if (child < 0) throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(errno));
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends a stopped process too, which no other signal does
      if (::getppid() != parent) ::_exit(1);
      ::signal(SIGTERM, SIG_DFL);  // of the parent, where it is counted
      errors_.join();
      ::setenv("RANK", std::to_string(rank).c_str(), 1);
      ::setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
      ::setenv("WORLD_SIZE", std::to_string(processes_).c_str(), 1);
      ::setenv("MASTER_ADDR", "127.0.0.1", 1);
      ::setenv("MASTER_PORT", std::to_string(port_).c_str(), 1);
      ::unsetenv("TORCHELASTIC_USE_AGENT_STORE");
      return true;
    }
    ranks_[child] = rank;
    return false;
  }

  int processes_, port_;
  std::map<pid_t, int> ranks_;
  SharedErrors errors_;
  int failure_ = 0;
  bool resumes_ = false;
  bool complete_ = false;  // rank 0 has ended, so the run has
  // Since when the other processes should end; never, as long as all run.
  Clock::time_point ending_at_ = Clock::time_point::max() - std::chrono::hours(1);
  bool stopped_ = false;
  int terms_passed_on_ = 0;
};

}  // namespace

std::variant<int, std::vector<std::string>> launch_local(const std::vector<std::string>& arguments,
                                                         int processes, int threads, bool restart) {
  const int cores = threads_for(1), each = threads == 0 ? threads_for(processes) : threads;
  const bool computes = std::find(arguments.begin(), arguments.end(), "--paced") == arguments.end();
  if (computes && processes * each > cores)
    std::cerr << "fomoe-train: warning: this machine's cores (" << cores
              << ") are fewer than the threads of all " << processes << " processes together ("
              << processes * each
              << "), so steps take longer than where each site has a machine of its own\n";
  Ranks ranks(processes);
  if (const std::optional<int> status = ranks.run(restart)) return *status;
  std::vector<std::string> of_rank = without_local(arguments);
  if (threads == 0) of_rank.push_back("--threads=" + std::to_string(each));
  if (ranks.resumes() && std::find(of_rank.begin(), of_rank.end(), "--resume") == of_rank.end())
    of_rank.emplace_back("--resume");
  return of_rank;
}

}  // namespace fomoe::trainer
