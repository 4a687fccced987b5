// A process with user, network, mount and process-id namespaces of its own. It is the init of its process
// ids: when it ends, for whatever reason, the kernel ends everything in it and removes every interface.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace fomoe::platforms::wan {

/// What this machine does not allow or cannot do, in words; exit status 1.
class Refusal : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Closes what it holds.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(other.value_) { other.value_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  [[nodiscard]] int get() const { return value_; }
  void reset();

 private:
  int value_;
};

/// Runs `inside` in a new isolated process, which is killed when this one ends; returns its id here. What
/// `inside` returns is its exit status; it must not throw. Signals are blocked in it.
pid_t start_isolated(const std::function<int()>& inside);

/// For processes that start in there and are not the relay: this user's own priority, no blocked signals.
void become_ordinary();

/// One site: its network namespace and the relay's end of its only interface.
struct SiteNetwork {
  Descriptor network;
  Descriptor tun;
  Descriptor route_control;  // egress.hpp
};

struct NetworkOptions {
  std::string tun_device = "/dev/net/tun";
  std::string congestion_control = {};  // empty: bbr, else cubic, else reno, else what the kernel has
  double most_bytes_in_flight = 0;      // what a TCP socket's buffers must hold
};

/// Only inside start_isolated(): creates the namespace, moves this process into it, sets up loopback and the
/// interface.
SiteNetwork make_site_network(std::uint32_t address, int mtu, const NetworkOptions& options);

/// Moves this process into the namespace.
void enter(const SiteNetwork& site);

/// A value under /proc/sys/net/ipv4 as this process's namespace has it; empty where there is none.
std::string network_setting(const std::string& name);

/// "open /dev/net/tun: Permission denied"
[[noreturn]] void refuse_system_call(const std::string& what);

}  // namespace fomoe::platforms::wan
