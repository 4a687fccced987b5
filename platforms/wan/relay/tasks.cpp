#include "platforms/wan/relay/tasks.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "platforms/wan/relay/relay.hpp"

namespace fomoe::platforms::wan {

namespace {

/// Kills the child processes that still run when it is destroyed, so that no measurement disturbs the next.
class Children {
 public:
  ~Children() {
    for (const pid_t process : processes) {
      if (process <= 0) continue;
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
  }
  std::vector<pid_t> processes;  // 0 for a process that has ended
};

class SharedAnswers {
 public:
  explicit SharedAnswers(std::size_t count) : bytes_(std::max<std::size_t>(1, count) * sizeof(double)) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) refuse_system_call("mmap");
    values = static_cast<double*>(memory);
  }
  ~SharedAnswers() { ::munmap(values, bytes_); }
  SharedAnswers(const SharedAnswers&) = delete;
  SharedAnswers& operator=(const SharedAnswers&) = delete;
  double* values;

 private:
  std::size_t bytes_;
};

sigset_t stops(bool with_children) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  if (with_children) sigaddset(&set, SIGCHLD);
  return set;
}

[[noreturn]] void run_task(const SiteNetwork& site, const std::vector<int>& cores, const Task& task,
                           double& answer) {
  try {
    if (!task.prompt) become_ordinary();
    ::signal(SIGPIPE, SIG_IGN);  // the other end of a connection may close first
    enter(site);
    if (!cores.empty()) run_on(cores);
    answer = task.work();
    ::_exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fomoe-wan: %s\n", error.what());
    ::_exit(1);
  }
}

}  // namespace

std::vector<double> run_tasks(const std::vector<SiteNetwork>& sites,
                              const std::vector<std::vector<int>>& cores, const std::vector<Task>& tasks) {
  const SharedAnswers answers(tasks.size());
  Children children;
  std::size_t unfinished = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto site = static_cast<std::size_t>(tasks[i].site);
    const pid_t process = ::fork();
    if (process < 0) refuse_system_call("fork");
    if (process == 0)
      run_task(sites[site], cores.empty() ? std::vector<int>{} : cores[site], tasks[i], answers.values[i]);
    children.processes.push_back(process);
    unfinished += tasks[i].background ? 0 : 1;
  }
  const sigset_t awaited = stops(true);
  while (unfinished > 0) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      pid_t& process = children.processes[i];
      int status = 0;
      if (process <= 0 || ::waitpid(process, &status, WNOHANG) != process) continue;
      process = 0;
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw Refusal(fmt::format("a measurement at site {} failed", tasks[i].site));
      if (!tasks[i].background) --unfinished;
    }
    if (unfinished == 0) break;
    // A child that ended after waitpid() has left a pending SIGCHLD, so none is missed.
    if (const int signal = ::sigwaitinfo(&awaited, nullptr); signal > 0 && signal != SIGCHLD)
      throw Interrupted(signal);
  }
  return {answers.values, answers.values + tasks.size()};
}

void pause_for(double seconds) {
  const sigset_t awaited = stops(false);
  const timespec left = {static_cast<time_t>(seconds),
                         static_cast<long>((seconds - std::floor(seconds)) * 1e9)};
  if (const int signal = ::sigtimedwait(&awaited, nullptr, &left); signal > 0) throw Interrupted(signal);
}

}  // namespace fomoe::platforms::wan
