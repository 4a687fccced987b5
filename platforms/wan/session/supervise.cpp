#include "platforms/wan/session/supervise.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "platforms/wan/relay/relay.hpp"

namespace fomoe::platforms::wan {

namespace {

constexpr double kGrace_s = 5;
constexpr int kCannotStart = 127;

/// stdout or stderr of a site's command. It forwards whole lines, with the site's name before each.
class Stream {
 public:
  Stream(Descriptor from, int to, std::string prefix)
      : from_(std::move(from)), to_(to), prefix_(std::move(prefix)) {}
  [[nodiscard]] int descriptor() const { return from_.get(); }

  void pass_on() {
    std::array<char, 65536> buffer{};
    for (;;) {
      const ssize_t size = ::read(from_.get(), buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return;
      if (size <= 0) return end();
      for (ssize_t i = 0; i < size; ++i) {
        if (line_.empty()) line_ = prefix_;
        line_ += buffer[static_cast<std::size_t>(i)];
        if (buffer[static_cast<std::size_t>(i)] == '\n') flush();
      }
    }
  }

  void end() {
    if (!line_.empty()) line_ += '\n';
    flush();
    from_.reset();
  }

 private:
  void flush() {
    for (std::size_t written = 0; written < line_.size();) {
      const ssize_t size = ::write(to_, line_.data() + written, line_.size() - written);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) break;  // our reader is gone; the run continues
      written += static_cast<std::size_t>(size);
    }
    line_.clear();
  }

  Descriptor from_;
  int to_;
  std::string prefix_, line_;
};

[[noreturn]] void become(const SiteNetwork& site, const SiteCommand& of, const std::function<void()>& join,
                         const std::vector<std::string>& command, int out, int err) {
  try {
    become_ordinary();
    join();           // must follow become_ordinary(): a process of real-time priority may not join a group
    ::setpgid(0, 0);  // its descendants can then be ended together, and only this program forwards Ctrl-C
    enter(site);
    if (!of.cores.empty()) run_on(of.cores);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    for (const auto& [name, value] : of.environment) ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    std::fprintf(stderr, "%s: cannot be started: %s\n", arguments[0], std::strerror(errno));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::fflush(stderr);
  ::_exit(kCannotStart);
}

std::pair<Descriptor, Descriptor> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) refuse_system_call("pipe");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // only the reading end
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

class Supervisor {
 public:
  Supervisor(const std::vector<SiteNetwork>& sites, const std::vector<SiteCommand>& commands,
             const std::vector<std::string>& command, pid_t relay, const CpuQuota* quota)
      : commands_(commands), relay_(relay) {
    sigset_t awaited;
    sigemptyset(&awaited);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&awaited, signal);
    signals_ = Descriptor(::signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK));
    if (signals_.get() < 0) refuse_system_call("signalfd");
    result_.sites.resize(sites.size());
    for (std::size_t i = 0; i < commands.size(); ++i) {
      auto [out, out_end] = make_pipe();
      auto [err, err_end] = make_pipe();
      const pid_t process = ::fork();
      if (process < 0) refuse_system_call("fork");
      if (process == 0) {
        const auto join = [&] {
          if (quota != nullptr) quota->join(commands[i].site);
        };
        become(sites[static_cast<std::size_t>(commands[i].site)], commands[i], join, command, out_end.get(),
               err_end.get());
      }
      ::setpgid(process, process);  // also done here, so that it precedes the first signal
      processes_.push_back(process);
      const std::string prefix = "[" + commands[i].name + "] ";
      streams_.emplace_back(std::move(out), STDOUT_FILENO, prefix);
      streams_.emplace_back(std::move(err), STDERR_FILENO, prefix);
    }
  }

  Supervised run() {
    running_ = processes_.size();
    while (running_ > 0) {
      wait();
      for (Stream& stream : streams_)
        if (stream.descriptor() >= 0) stream.pass_on();
      take_signals();
      reap();
      if (kill_at_s_ > 0 && monotonic_s() >= kill_at_s_) {
        signal_all(SIGKILL);
        kill_at_s_ = monotonic_s() + kGrace_s;
      }
    }
    for (Stream& stream : streams_) {
      // Forwards what is still buffered in the pipes and closes them, without waiting for background
      // processes that still run.
      if (stream.descriptor() >= 0) stream.pass_on();
      if (stream.descriptor() >= 0) stream.end();
    }
    return result_;
  }

 private:
  void wait() {
    std::vector<pollfd> ready = {{signals_.get(), POLLIN, 0}};
    for (const Stream& stream : streams_)
      if (stream.descriptor() >= 0) ready.push_back({stream.descriptor(), POLLIN, 0});
    ::poll(ready.data(), ready.size(), kill_at_s_ > 0 ? 100 : -1);
  }

  void take_signals() {
    signalfd_siginfo information{};
    while (::read(signals_.get(), &information, sizeof information) == sizeof information) {
      const int signal = static_cast<int>(information.ssi_signo);
      if (signal == SIGCHLD) continue;
      if (result_.status == 0) result_.status = 128 + signal;
      stop(signal);
    }
  }

  void reap() {
    int status = 0;
    // This process is the init of its namespace, so it also reaps orphaned processes.
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == relay_) throw Refusal("the relay ended before the commands of the sites");
      for (std::size_t i = 0; i < processes_.size(); ++i)
        if (processes_[i] == ended)
          command_ended(i, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
  }

  void command_ended(std::size_t command, int status) {
    int& of_site = result_.sites[static_cast<std::size_t>(commands_[command].site)].status;
    if (of_site == 0) of_site = status;
    processes_[command] = 0;
    --running_;
    if (status == 0 || result_.status != 0) return;
    result_.status = status;
    if (running_ == 0) return;
    std::fprintf(stderr, "fomoe-wan: site %s ended with status %d; the other sites are stopped\n",
                 commands_[command].name.c_str(), status);
    stop(SIGTERM);
  }

  void stop(int signal) {
    signal_all(signal);
    if (kill_at_s_ == 0) kill_at_s_ = monotonic_s() + kGrace_s;
  }

  void signal_all(int signal) {
    for (const pid_t process : processes_)
      if (process > 0) ::kill(-process, signal);
  }

  const std::vector<SiteCommand>& commands_;
  pid_t relay_;
  Descriptor signals_;
  std::vector<pid_t> processes_;  // [command]; 0 if the process has ended
  std::vector<Stream> streams_;
  std::size_t running_ = 0;
  double kill_at_s_ = 0;  // time of SIGKILL; 0 if the commands were not asked to end
  Supervised result_;
};

}  // namespace

Supervised supervise(const std::vector<SiteNetwork>& sites, const std::vector<SiteCommand>& commands,
                     const std::vector<std::string>& command, pid_t relay, const CpuQuota* quota) {
  return Supervisor(sites, commands, command, relay, quota).run();
}

}  // namespace fomoe::platforms::wan
