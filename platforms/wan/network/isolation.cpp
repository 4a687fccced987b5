#include "platforms/wan/network/isolation.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace fomoe::platforms::wan {

void refuse_system_call(const std::string& what) { throw Refusal(what + ": " + std::strerror(errno)); }

namespace {

constexpr int kFailure = 1;
int usual_niceness = 0;

bool write_to(const std::string& path, const std::string& text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.get() >= 0 &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Maps as many users into the namespace as the kernel allows. If this process is root, it maps all users, so
/// that files of others stay readable. Otherwise it maps this user to root.
bool map_users(pid_t child) {
  const std::string folder = fmt::format("/proc/{}/", child);
  if (::geteuid() == 0 && write_to(folder + "uid_map", "0 0 4294967295\n") &&
      write_to(folder + "gid_map", "0 0 4294967295\n"))
    return true;
  write_to(folder + "setgroups", "deny");  // the kernel requires this of users who are not root
  const bool users = write_to(folder + "uid_map", fmt::format("0 {} 1\n", ::geteuid()));
  const bool groups = write_to(folder + "gid_map", fmt::format("0 {} 1\n", ::getegid()));
  return users && groups;
}

pid_t clone_with(unsigned long flags) {
  // Without a new stack, clone() works like fork(). This program has one thread, so no other thread holds a
  // lock.
  return static_cast<pid_t>(::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

int begin(Descriptor go, const std::function<int()>& inside) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  char byte = 0;
  // If there is nothing to read, the parent died before it mapped the users, or could not map them.
  if (::read(go.get(), &byte, 1) != 1) return kFailure;
  go.reset();
  // A new /proc shows the process ids of this namespace. If the kernel refuses it, as in some containers, the
  // outer /proc stays. Programs that look up their own process id there then do not find it; nothing else
  // changes.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0)
    ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  return inside();
}

}  // namespace

pid_t start_isolated(const std::function<int()>& inside) {
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  // The relay needs real-time priority, so that it runs when a packet is due, whatever else this machine
  // does. Only root may request it, and only outside the namespace. The isolated process therefore starts
  // with it, and all processes but the relay give it up (become_ordinary).
  usual_niceness = ::getpriority(PRIO_PROCESS, 0);
  ::setpriority(PRIO_PROCESS, 0, -15);  // a fallback in case that the next line is not allowed
  const sched_param lowest_real_time = {1}, ordinary = {0};
  ::sched_setscheduler(0, SCHED_RR, &lowest_real_time);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) refuse_system_call("pipe");
  Descriptor go(ends[0]), signal_go(ends[1]);

  constexpr unsigned long kNamespaces = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS;
  bool users = true;
  pid_t child = clone_with(kNamespaces | CLONE_NEWUSER);
  if (child < 0 && ::geteuid() == 0) {
    users = false;  // root needs none, so it works where user namespaces are disabled
    child = clone_with(kNamespaces);
  }
  if (child == 0) {
    signal_go.reset();
    ::_exit(begin(std::move(go), inside));
  }
  const int error = errno;
  go.reset();
  ::sched_setscheduler(0, SCHED_OTHER, &ordinary);
  ::setpriority(PRIO_PROCESS, 0, usual_niceness);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) {
    throw Refusal(fmt::format(
        "this machine does not allow user namespaces ({}); on the host try `sysctl "
        "kernel.unprivileged_userns_clone=1`, `sysctl kernel.apparmor_restrict_unprivileged_userns=0` "
        "or `sysctl user.max_user_namespaces=1000`; in a container start it with --privileged",
        std::strerror(error)));
  }
  if (users && !map_users(child)) {
    throw Refusal(fmt::format("this machine does not allow user namespaces (/proc/{}/uid_map: {})", child,
                              std::strerror(errno)));
  }
  if (::write(signal_go.get(), "g", 1) != 1) refuse_system_call("cannot start the isolated process");
  return child;
}

void become_ordinary() {
  const sched_param ordinary = {0};
  ::sched_setscheduler(0, SCHED_OTHER, &ordinary);
  ::setpriority(PRIO_PROCESS, 0, usual_niceness);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace fomoe::platforms::wan
