#include "platforms/wan/check/probes.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "platforms/wan/network/isolation.hpp"
#include "platforms/wan/network/layout.hpp"
#include "platforms/wan/relay/relay.hpp"

namespace fomoe::platforms::wan {

namespace {

constexpr double kPatience_s = 10;  // time limit for the other end, on a busy machine

sockaddr_in address_of(std::uint32_t host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(host);
  return address;
}

Descriptor open_socket(int type) {
  Descriptor result(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  if (result.get() < 0) refuse_system_call("socket");
  return result;
}

void bind_to(const Descriptor& socket, std::uint16_t port) {
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = address_of(INADDR_ANY, port);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    refuse_system_call("bind");
}

bool readable(const Descriptor& socket, double seconds) {
  pollfd wanted = {socket.get(), POLLIN, 0};
  return ::poll(&wanted, 1, static_cast<int>(std::max(0.0, seconds) * 1e3) + 1) > 0;
}

Descriptor connect_to(std::uint32_t to, std::uint16_t port) {
  const sockaddr_in address = address_of(to, port);
  const double until_s = monotonic_s() + kPatience_s;
  for (;;) {
    Descriptor socket = open_socket(SOCK_STREAM);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return socket;
    // The other site's process may not listen yet.
    if (errno != ECONNREFUSED || monotonic_s() > until_s)
      refuse_system_call("cannot connect to " + dotted(to));
    ::usleep(2000);
  }
}

}  // namespace

double send_tcp(std::uint32_t to, const RateProbe& probe) {
  const Descriptor socket = connect_to(to, probe.port);
  // Reno stays in slow start until the window is full, in every kernel; Cubic may leave it earlier.
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
  if (probe.pace_bytes_per_s > 0) {
    const auto pace = static_cast<std::uint64_t>(probe.pace_bytes_per_s);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_MAX_PACING_RATE, &pace, sizeof pace);
  }
  const timeval patience = {static_cast<time_t>(kPatience_s), 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const std::vector<char> zeros(static_cast<std::size_t>(probe.piece_bytes));
  double sent = 0, arrived = 0;
  for (;;) {
    const bool full = sent + probe.piece_bytes > arrived + probe.window_bytes;
    if (full && !readable(socket, kPatience_s)) break;
    double count = 0;
    ssize_t size = 0;
    while ((size = ::recv(socket.get(), &count, sizeof count, MSG_DONTWAIT)) == sizeof count) arrived = count;
    if (size == 0 || (size < 0 && errno != EAGAIN)) break;  // the receiver has finished
    if (sent + probe.piece_bytes > arrived + probe.window_bytes) continue;
    const ssize_t bytes = ::send(socket.get(), zeros.data(), zeros.size(), MSG_NOSIGNAL);
    if (bytes <= 0) break;
    sent += static_cast<double>(bytes);
  }
  return sent;
}

double receive_tcp(const RateProbe& probe) {
  const Descriptor listener = open_socket(SOCK_STREAM);
  bind_to(listener, probe.port);
  if (::listen(listener.get(), 1) != 0) refuse_system_call("listen");
  if (!readable(listener, kPatience_s)) throw Refusal("two sites did not establish a TCP connection in time");
  const Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.get() < 0) refuse_system_call("accept");

  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);  // sends the reports without delay
  std::vector<char> buffer(1U << 18U);
  double first_s = 0, begin_s = 0, begin_bytes = 0, bytes = 0, told = 0;
  for (;;) {
    // If nothing arrives within the limit, the result is the bytes so far ÷ the whole time.
    const bool more = readable(socket, kPatience_s);
    const double now_s = monotonic_s();
    const ssize_t size = more ? ::recv(socket.get(), buffer.data(), buffer.size(), 0) : 0;
    if (size > 0) bytes += static_cast<double>(size);
    if (bytes >= told + probe.piece_bytes) {
      if (::send(socket.get(), &bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
        return 0;
      told = bytes;
    }
    if (first_s == 0) first_s = now_s;
    if (begin_s == 0 && now_s >= first_s + probe.warm_up_s) {
      begin_s = now_s;
      begin_bytes = bytes;
    }
    const bool over = begin_s > 0 && now_s >= begin_s + probe.measured_s;
    if (over || size <= 0)
      return begin_s > 0 && now_s > begin_s ? (bytes - begin_bytes) / (now_s - begin_s) : 0;
  }
}

double echo_udp(std::uint16_t port) {
  const Descriptor socket = open_socket(SOCK_DGRAM);
  bind_to(socket, port);
  std::array<char, 64> buffer{};
  for (;;) {
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const ssize_t size = ::recvfrom(socket.get(), buffer.data(), buffer.size(), 0,
                                    reinterpret_cast<sockaddr*>(&from), &length);
    if (size > 0)
      ::sendto(socket.get(), buffer.data(), static_cast<std::size_t>(size), 0,
               reinterpret_cast<const sockaddr*>(&from), length);
  }
}

double ping_udp(std::uint32_t to, std::uint16_t port, int count) {
  const Descriptor socket = open_socket(SOCK_DGRAM);
  const sockaddr_in address = address_of(to, port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    refuse_system_call("connect");
  std::vector<double> round_trips_s;
  const double until_s = monotonic_s() + kPatience_s + 10.0 * count;
  for (std::uint64_t number = 0; static_cast<int>(round_trips_s.size()) < count; ++number) {
    const std::array<std::uint64_t, 2> sent = {number, 0};
    const double sent_s = monotonic_s();
    if (sent_s > until_s) throw Refusal("a site did not return UDP datagrams in time");
    if (::send(socket.get(), sent.data(), sizeof sent, 0) < 0) {
      ::usleep(2000);  // the other site's process does not listen yet
      continue;
    }
    std::array<std::uint64_t, 2> answer = {~number, 0};
    double wait_s = 2;
    while (answer[0] != number && wait_s > 0 && readable(socket, wait_s)) {
      if (::recv(socket.get(), answer.data(), sizeof answer, 0) < 0) break;
      wait_s = sent_s + 2 - monotonic_s();
    }
    if (answer[0] == number) round_trips_s.push_back(monotonic_s() - sent_s);
  }
  const auto middle = round_trips_s.begin() + count / 2;
  std::nth_element(round_trips_s.begin(), middle, round_trips_s.end());
  return *middle;
}

}  // namespace fomoe::platforms::wan
