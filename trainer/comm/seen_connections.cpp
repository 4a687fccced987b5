#include "trainer/comm/seen_connections.hpp"

#include <dirent.h>
#include <linux/tcp.h>  // netinet/tcp.h has an older tcp_info, without the smallest round trip
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>

namespace fomoe::trainer {
namespace {

constexpr double kMicrosecond = 1e-6;
constexpr int kEstablished = 1;       // TCP_ESTABLISHED in the kernel's include/net/tcp_states.h
constexpr double kLeastShare = 0.01;  // of the bytes of the busiest connection

std::optional<scenario::SeenConnection> seen(int file) {
  int protocol = 0;
  socklen_t length = sizeof protocol;
  if (::getsockopt(file, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) != 0 || protocol != IPPROTO_TCP)
    return std::nullopt;
  tcp_info info{};
  length = sizeof info;
  char name[16] = {};
  socklen_t name_length = sizeof name - 1;
  if (::getsockopt(file, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || info.tcpi_state != kEstablished ||
      ::getsockopt(file, IPPROTO_TCP, TCP_CONGESTION, name, &name_length) != 0)
    return std::nullopt;
  return scenario::SeenConnection{name,
                                  static_cast<double>(info.tcpi_snd_mss),
                                  info.tcpi_min_rtt * kMicrosecond,
                                  info.tcpi_rtt * kMicrosecond,
                                  static_cast<double>(info.tcpi_total_retrans),
                                  static_cast<double>(info.tcpi_bytes_acked),
                                  static_cast<double>(info.tcpi_bytes_received)};
}

/// The last of the three numbers of net.ipv4.tcp_wmem or tcp_rmem; 0 if it cannot be read.
double largest_buffer(const char* name) {
  std::ifstream file(std::string("/proc/sys/net/ipv4/") + name);
  double least = 0, usual = 0, largest = 0;
  return file >> least >> usual >> largest ? largest : 0;
}

}  // namespace

scenario::SeenConnections seen_connections() {
  scenario::SeenConnections found;
  found.send_buffer_bytes = largest_buffer("tcp_wmem");
  found.receive_buffer_bytes = largest_buffer("tcp_rmem");
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    if (entry->d_name[0] == '.') continue;
    if (auto one = seen(std::atoi(entry->d_name))) found.list.push_back(*one);
  }
  const auto carried = [](const scenario::SeenConnection& one) {
    return one.sent_bytes + one.received_bytes;
  };
  std::sort(found.list.begin(), found.list.end(),
            [&](const auto& a, const auto& b) { return carried(a) > carried(b); });
  std::erase_if(found.list, [most = found.list.empty() ? 0 : carried(found.list.front()),
                             &carried](const auto& one) { return carried(one) < kLeastShare * most; });
  if (found.list.size() > scenario::SeenConnections::kMostListed)
    found.list.resize(scenario::SeenConnections::kMostListed);
  return found;
}

}  // namespace fomoe::trainer
