// Starts a process in new user, network, mount and process-id namespaces. The process is the init of its
// process-id namespace: when it ends, for whatever reason, the kernel ends all processes in the namespace and
// removes every interface.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "platforms/support/descriptor.hpp"

namespace fomoe::platforms::wan {

/// This machine does not allow an operation, or cannot do it; what() says which. The program exits with
/// status 1.
class Refusal : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs `inside` in a new isolated process, which is killed when this process ends. Returns the id of the new
/// process as seen from here. The return value of `inside` is the exit status of the process. `inside` must
/// not throw. Signals are blocked in the process. Throws Refusal if this machine does not allow it.
pid_t start_isolated(const std::function<int()>& inside);

/// Restores the user's own priority and unblocks all signals. For isolated processes other than the relay.
void become_ordinary();

/// One site: its network namespace and the relay's end of its only interface.
struct SiteNetwork {
  Descriptor network;
  Descriptor tun;
  Descriptor route_control;  // see open_route_control() in egress.hpp
};

struct NetworkOptions {
  std::string tun_device = "/dev/net/tun";
  std::string congestion_control = {};  // TCP's congestion control; the system's if empty
};

/// Creates a site's network namespace, moves this process into it, and sets up loopback and the interface.
/// May be called only inside start_isolated(). Throws Refusal if this machine does not allow it.
SiteNetwork make_site_network(std::uint32_t address, int mtu, const NetworkOptions& options);

/// Moves this process into the site's network namespace.
void enter(const SiteNetwork& site);

/// Limits of the buffers of TCP sockets in this process's namespace, as in net.ipv4.tcp_wmem and tcp_rmem.
struct SocketBuffers {
  std::string send, receive;
};
SocketBuffers socket_buffers();
void set_socket_buffers(const SocketBuffers& buffers);
/// The same limits, raised to at least `bytes` where they are lower.
SocketBuffers large_enough(SocketBuffers buffers, double bytes);

/// The value of a setting under /proc/sys/net/ipv4 in this process's namespace; empty if there is none.
std::string network_setting(const std::string& name);

/// Throws Refusal with `what` and the text of errno, for instance "open /dev/net/tun: Permission denied".
[[noreturn]] void refuse_system_call(const std::string& what);

}  // namespace fomoe::platforms::wan
