#include "experiments/probe/line_socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "experiments/text/nesting.hpp"

namespace fomoe::probe {

namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 20;
constexpr double kSendLimit_s = 30;
constexpr double kOneAttempt_s = 5;

std::string system_error() { return std::strerror(errno); }

bool wait_for(int descriptor, short events, double until_s) {
  for (;;) {
    pollfd wanted = {descriptor, events, 0};
    const double left_ms = std::clamp((until_s - now_s()) * 1e3, 0.0, 3.6e6);
    const int ready = ::poll(&wanted, 1, static_cast<int>(left_ms) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || now_s() >= until_s) return false;
  }
}

void set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

/// The numeric form of a socket address; empty if the conversion fails.
std::optional<Descriptor> attempt(const addrinfo& address, double until_s) {
  Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) return std::nullopt;
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS || !wait_for(socket.get(), POLLOUT, until_s)) return std::nullopt;
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return std::nullopt;
  }
  ::fcntl(socket.get(), F_SETFL, 0);
  return socket;
}

}  // namespace

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool readable(const Descriptor& socket, double until_s) { return wait_for(socket.get(), POLLIN, until_s); }

std::optional<Descriptor> listen_on(int port) {
  // One socket serves IPv4 and IPv6 if this machine has IPv6. A new network namespace may have none.
  for (const int family : {AF_INET6, AF_INET}) {
    Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) continue;
    set(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(static_cast<std::uint16_t>(port));
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = six.sin6_port;
    if (family == AF_INET6) set(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    const bool bound = family == AF_INET6
                           ? ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&six), sizeof six) == 0
                           : ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&four), sizeof four) == 0;
    if (bound && ::listen(socket.get(), SOMAXCONN) == 0) return socket;
    if (errno == EADDRINUSE) return std::nullopt;
    if (family == AF_INET)
      throw std::runtime_error(fmt::format("cannot listen on port {}: {}", port, system_error()));
  }
  throw std::runtime_error(
      fmt::format("cannot listen on port {}: this machine supports neither IPv4 nor IPv6", port));
}

std::optional<Descriptor> accept_from(const Descriptor& listener, double until_s, std::string* peer) {
  while (readable(listener, until_s)) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    Descriptor socket(
        ::accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC));
    if (socket.get() < 0) continue;  // the peer disconnected before accept()
    std::array<char, NI_MAXHOST> text{};
    if (peer != nullptr && ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, text.data(),
                                         text.size(), nullptr, 0, NI_NUMERICHOST) == 0) {
      *peer = text.data();
      if (peer->starts_with("::ffff:")) peer->erase(0, 7);  // an IPv4 address on a dual-stack socket
    }
    return socket;
  }
  return std::nullopt;
}

Descriptor connect_to(const std::string& host, int port, double until_s) {
  std::string reason = "no answer";
  do {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (status == 0) {
      for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
        if (auto socket = attempt(*address, std::min(until_s, now_s() + kOneAttempt_s))) {
          ::freeaddrinfo(found);
          return std::move(*socket);
        }
      }
      ::freeaddrinfo(found);
    } else {
      reason = ::gai_strerror(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  } while (now_s() < until_s);
  throw ConnectionLost(fmt::format("{}, port {}: {}", host, port, reason));
}

LineSocket::LineSocket(Descriptor socket) : socket_(std::move(socket)) {
  set(socket_.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket_.get(), IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(socket_.get(), IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(socket_.get(), IPPROTO_TCP, TCP_KEEPCNT, 6);
  set(socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, 45'000);
}

void LineSocket::send(const nlohmann::json& line) {
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  const double until_s = now_s() + kSendLimit_s;
  for (std::size_t sent = 0; sent < text.size();) {
    if (!wait_for(socket_.get(), POLLOUT, until_s)) throw ConnectionLost("does not accept more data");
    const ssize_t size =
        ::send(socket_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size < 0) throw ConnectionLost(system_error());
    sent += static_cast<std::size_t>(size);
  }
}

std::optional<nlohmann::json> LineSocket::receive(double until_s) {
  for (;;) {
    if (auto line = take_line()) return line;
    if (!readable(socket_, until_s)) return std::nullopt;
    std::array<char, 65536> buffer{};
    const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size < 0) throw ConnectionLost(system_error());
    if (size == 0) throw ConnectionLost("closed the connection");
    read_.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

std::optional<nlohmann::json> LineSocket::take_line() {
  const std::size_t end = read_.find('\n');
  if (end == std::string::npos) {
    if (read_.size() > kLongestLine) throw ConnectionLost("sends data without line breaks");
    return std::nullopt;
  }
  const std::string text = read_.substr(0, end);
  read_.erase(0, end + 1);
  if (!scenario::excess_in_sorted_json(text).empty()) throw ConnectionLost("sends JSON of too many levels");
  auto line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) throw ConnectionLost("sends text that is not a JSON object");
  return line;
}

int whole_number(const nlohmann::json& message, const char* key) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const auto found = message.find(key);
  if (found == message.end() || !found->is_number_integer() || found->get<std::int64_t>() < 0 ||
      found->get<std::int64_t>() > kMost)
    throw ConnectionLost(fmt::format("sends no whole number as \"{}\"", key));
  return found->get<int>();
}

}  // namespace fomoe::probe
