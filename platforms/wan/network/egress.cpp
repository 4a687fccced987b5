#include "platforms/wan/network/egress.hpp"

#include <fmt/format.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "platforms/wan/network/layout.hpp"

namespace fomoe::platforms::wan {

namespace {

// Burst of the token bucket, as a time at the full rate. With less, a timer that fires late costs rate: up to
// 1 % with 2 ms, and half of the rate with 1 ms.
constexpr double kBurst_s = 0.005, kLeastBurst_bytes = 16384, kMostSize_bytes = 4e9;

/// A netlink request, built by appending attributes.
class Request {
 public:
  Request(std::uint16_t type, std::uint16_t flags, const tcmsg& body) {
    header().nlmsg_type = type;
    header().nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    header().nlmsg_len = NLMSG_LENGTH(sizeof body);
    std::memcpy(NLMSG_DATA(&header()), &body, sizeof body);
  }

  void add(std::uint16_t type, const void* value, std::size_t size) {
    const std::size_t at = begin(type);
    std::memcpy(bytes_.data() + at + RTA_LENGTH(0), value, size);
    header().nlmsg_len += static_cast<std::uint32_t>(size);
    end(at);
  }
  template <typename T>
  void add(std::uint16_t type, const T& value) {
    add(type, &value, sizeof value);
  }
  /// Opens an attribute. The attributes that are added until end() are nested in it.
  std::size_t begin(std::uint16_t type) {
    const std::size_t at = NLMSG_ALIGN(header().nlmsg_len);
    const rtattr attribute{RTA_LENGTH(0), type};
    std::memcpy(bytes_.data() + at, &attribute, sizeof attribute);
    header().nlmsg_len = static_cast<std::uint32_t>(at + RTA_LENGTH(0));
    return at;
  }
  void end(std::size_t at) {
    const auto length = static_cast<std::uint16_t>(header().nlmsg_len - at);
    std::memcpy(bytes_.data() + at + offsetof(rtattr, rta_len), &length, sizeof length);
  }

  /// Returns the kernel's answer: 0, or an error number.
  [[nodiscard]] int sent_over(int socket) {
    if (::send(socket, bytes_.data(), header().nlmsg_len, 0) < 0) return errno;
    alignas(nlmsghdr) std::array<std::byte, 4096> answer{};
    const ssize_t size = ::recv(socket, answer.data(), answer.size(), 0);
    if (size < 0) return errno;
    nlmsghdr head{};
    std::memcpy(&head, answer.data(), sizeof head);
    if (head.nlmsg_type != NLMSG_ERROR) return EPROTO;
    int error = 0;
    std::memcpy(&error, answer.data() + NLMSG_HDRLEN, sizeof error);
    return -error;
  }

 private:
  nlmsghdr& header() { return *reinterpret_cast<nlmsghdr*>(bytes_.data()); }
  alignas(nlmsghdr) std::array<std::byte, 1024> bytes_{};
};

int interface_index(const Descriptor& route_control) {
  ifreq request{};
  std::strncpy(request.ifr_name, kInterface, IFNAMSIZ - 1);
  if (::ioctl(route_control.get(), SIOCGIFINDEX, &request) != 0)
    refuse_system_call(std::string(kInterface) + ": cannot read the interface index");
  return request.ifr_ifindex;
}

}  // namespace

Descriptor open_route_control() {
  Descriptor control(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (control.get() < 0) refuse_system_call("cannot open a netlink route socket");
  return control;
}

void limit_egress(const Descriptor& route_control, double bytes_per_s, double queue_bytes, int mtu) {
  tcmsg body{};
  body.tcm_family = AF_UNSPEC;
  body.tcm_ifindex = interface_index(route_control);
  body.tcm_parent = TC_H_ROOT;
  body.tcm_handle = TC_H_MAKE(1U << 16U, 0);
  Request request(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, body);
  request.add(TCA_KIND, "tbf", 4);
  const std::size_t options = request.begin(TCA_OPTIONS);
  tc_tbf_qopt parameters{};
  const auto rate = static_cast<std::uint64_t>(bytes_per_s);
  parameters.rate.rate = static_cast<std::uint32_t>(std::min<std::uint64_t>(rate, UINT32_MAX));
  parameters.rate.linklayer =
      TC_LINKLAYER_ETHERNET;  // packet sizes are used as they are, without a rate table
  parameters.limit = static_cast<std::uint32_t>(std::min(queue_bytes, kMostSize_bytes));
  request.add(TCA_TBF_PARMS, parameters);
  // The filter would drop a packet that is larger than the burst.
  const double least = std::max(kLeastBurst_bytes, static_cast<double>(mtu));
  const auto burst = static_cast<std::uint32_t>(std::clamp(bytes_per_s * kBurst_s, least, kMostSize_bytes));
  request.add(TCA_TBF_BURST, burst);
  if (rate > UINT32_MAX) request.add(TCA_TBF_RATE64, rate);
  request.end(options);
  if (const int error = request.sent_over(route_control.get()); error != 0) {
    throw Refusal(fmt::format(
        "this kernel does not allow a token bucket filter (tc-tbf) on a site's interface: {}; use "
        "--uplink-queue router, which does not need it",
        std::strerror(error)));
  }
}

}  // namespace fomoe::platforms::wan
