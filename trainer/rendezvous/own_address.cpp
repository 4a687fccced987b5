#include "trainer/rendezvous/own_address.hpp"

#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <vector>

#include "platforms/support/descriptor.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::trainer {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = "";
  if (::getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text;
}

// The source address of a packet to rank 0. With it, neither a container nor a network namespace needs a
// configured host name or interface.
std::string address_towards(const Launch& launch) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(launch.address.c_str(), std::to_string(launch.port).c_str(), &hints, &found) != 0)
    return kLoopback;
  std::string address;
  const Descriptor probe(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (probe.get() >= 0 && ::connect(probe.get(), found->ai_addr, found->ai_addrlen) == 0 &&
      ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0)
    address = numeric(reinterpret_cast<const sockaddr*>(&own), length);
  ::freeaddrinfo(found);
  return address.empty() ? kLoopback : address;
}

struct Interface {
  std::string name, address;
};

// IPv4 addresses come first, since most links between sites have them.
std::vector<Interface> interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> freed(list, ::freeifaddrs);
  std::vector<Interface> out;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family) continue;
      const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      out.push_back({one->ifa_name, numeric(one->ifa_addr, length)});
    }
  }
  return out;
}

}  // namespace

std::string own_address(const Launch& launch) {
  if (launch.interface.empty()) return address_towards(launch);
  std::string known;
  for (const Interface& one : interfaces()) {
    if (one.name == launch.interface || one.address == launch.interface) return one.address;
    known += (known.empty() ? "" : ", ") + one.name + " (" + one.address + ")";
  }
  throw UsageError("--interface: got \"" + launch.interface +
                   "\"; expected a network interface of this machine or one of its addresses: " + known +
                   "; for example --interface wg0");
}

}  // namespace fomoe::trainer
