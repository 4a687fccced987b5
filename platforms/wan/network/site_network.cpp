// Creates the network namespace of one site. It has a loopback interface and one TUN interface, whose other
// end the relay reads and writes.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "platforms/wan/network/egress.hpp"
#include "platforms/wan/network/isolation.hpp"
#include "platforms/wan/network/layout.hpp"

namespace fomoe::platforms::wan {

namespace {

ifreq request_for(const std::string& interface) {
  ifreq request{};
  std::memcpy(request.ifr_name, interface.data(), std::min<std::size_t>(interface.size(), IFNAMSIZ - 1));
  return request;
}

Descriptor open_tun(const std::string& device) {
  Descriptor tun(::open(device.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  const std::string why = std::strerror(errno);
  if (tun.get() < 0) {
    throw Refusal(
        fmt::format("{}: {}; fomoe-wan needs TUN devices: load the module on the host (`modprobe tun`), in a "
                    "container start it with --device /dev/net/tun, and let this user open it (`chmod 666 "
                    "/dev/net/tun` on the host)",
                    device, why));
  }
  ifreq request = request_for(kInterface);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(tun.get(), TUNSETIFF, &request) != 0)
    throw Refusal(fmt::format("{}: cannot create a network interface: {}", device, std::strerror(errno)));
  // The kernel then delivers runs of TCP segments uncut: see frame.hpp.
  if (::ioctl(tun.get(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) != 0)
    refuse_system_call(device + ": cannot enable segmentation offload");
  return tun;
}

void set_up(int control, const std::string& interface) {
  ifreq request = request_for(interface);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(control, SIOCSIFFLAGS, &request) != 0)
    refuse_system_call(interface + ": cannot bring up the interface");
}

void set_address(int control, unsigned long what, const std::string& dotted_quad) {
  ifreq request = request_for(kInterface);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, dotted_quad.c_str(), &address.sin_addr);
  std::memcpy(&request.ifr_addr, &address, sizeof address);
  if (::ioctl(control, what, &request) != 0)
    refuse_system_call(std::string(kInterface) + ": cannot set the address " + dotted_quad);
}

bool set_setting(const std::string& name, const std::string& value) {
  std::ofstream file("/proc/sys/net/ipv4/" + name);
  file << value << std::flush;
  return static_cast<bool>(file);
}

std::string at_least(const std::string& limits, double bytes) {
  std::istringstream now(limits);
  long long least = 4096, first = 65536, most = 0;
  now >> least >> first >> most;
  const auto wanted = static_cast<long long>(std::min(bytes, 1e9));
  return wanted > most ? fmt::format("{} {} {}", least, first, wanted) : limits;
}

}  // namespace

std::string network_setting(const std::string& name) {
  std::ifstream file("/proc/sys/net/ipv4/" + name);
  std::string line;
  std::getline(file, line);
  return line;
}

SiteNetwork make_site_network(std::uint32_t address, int mtu, const NetworkOptions& options) {
  if (::unshare(CLONE_NEWNET) != 0) refuse_system_call("this machine does not allow network namespaces");
  SiteNetwork site;
  site.network = Descriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (site.network.get() < 0) refuse_system_call("/proc/thread-self/ns/net");
  site.tun = open_tun(options.tun_device);

  const Descriptor control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (control.get() < 0) refuse_system_call("socket");
  set_up(control.get(), "lo");
  set_address(control.get(), SIOCSIFADDR, dotted(address));
  set_address(control.get(), SIOCSIFNETMASK, "255.255.255.0");  // all other sites are behind the interface
  ifreq request = request_for(kInterface);
  request.ifr_mtu = mtu;
  if (::ioctl(control.get(), SIOCSIFMTU, &request) != 0)
    refuse_system_call(fmt::format("{}: cannot set the MTU {}", kInterface, mtu));
  set_up(control.get(), kInterface);
  site.route_control = open_route_control();

  if (!options.congestion_control.empty()) {
    if (!set_setting("tcp_congestion_control", options.congestion_control)) {
      const std::string allowed = network_setting("tcp_allowed_congestion_control");
      throw Refusal(fmt::format(
          "--congestion-control: this kernel does not allow {0} in a network namespace; it allows: "
          "{1}; for example sysctl -w net.ipv4.tcp_allowed_congestion_control=\"{1} {0}\"",
          options.congestion_control, allowed));
    }
  }
  // Otherwise a connection would start with metrics that the kernel saved from the checks or from another
  // run.
  set_setting("tcp_no_metrics_save", "1");
  return site;
}

SocketBuffers socket_buffers() { return {network_setting("tcp_wmem"), network_setting("tcp_rmem")}; }

void set_socket_buffers(const SocketBuffers& buffers) {
  if (!set_setting("tcp_wmem", buffers.send) || !set_setting("tcp_rmem", buffers.receive))
    throw Refusal("this machine does not allow to change tcp_wmem and tcp_rmem in a network namespace");
}

SocketBuffers large_enough(SocketBuffers buffers, double bytes) {
  return {at_least(buffers.send, bytes), at_least(buffers.receive, bytes)};
}

void enter(const SiteNetwork& site) {
  if (::setns(site.network.get(), CLONE_NEWNET) != 0) refuse_system_call("setns");
}

}  // namespace fomoe::platforms::wan
