#include "trainer/store/store_server.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace fomoe::trainer {
namespace {

constexpr double kProofS = 10;                 // time in which a visitor must prove that it knows the secret
constexpr double kAnswerS = 60;                // time in which it must take an answer
constexpr double kRequestS = 3600 * 24 * 365;  // it may be silent while it trains
constexpr int kMostStrangers = 64;             // visitors that have not proved anything yet

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses addresses_of(const std::string& address, int port, int flags) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  const int error = ::getaddrinfo(address.empty() ? nullptr : address.c_str(), std::to_string(port).c_str(),
                                  &hints, &found);
  if (error != 0) throw std::runtime_error(address + ": " + ::gai_strerror(error));
  return {found, &::freeaddrinfo};
}

Descriptor listen_on(const addrinfo& where) {
  Descriptor socket(::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1, no = 0;
  if (socket.get() < 0) throw std::runtime_error(std::strerror(errno));
  // A run that starts anew finds connections of the run before it, which the system is still closing.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (where.ai_family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (::bind(socket.get(), where.ai_addr, where.ai_addrlen) != 0 || ::listen(socket.get(), 128) != 0) {
    throw std::runtime_error(std::strerror(errno));
  }
  return socket;
}

Descriptor listen_on(const std::string& address, int port) {
  const Addresses found = addresses_of(address, port, AI_PASSIVE);
  // Without an address, the one for all addresses of IPv6 also takes connections of IPv4.
  if (address.empty()) {
    for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
      if (one->ai_family != AF_INET6) continue;
      try {
        return listen_on(*one);
      } catch (const std::exception&) {
        if (errno == EADDRINUSE) throw;
      }
    }
  }
  return listen_on(*found);
}

void answer_at_once(int descriptor) {
  const int yes = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

std::string name_of(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST] = "?";
  (void)::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, nullptr, 0,
                      NI_NUMERICHOST);
  return host;
}

}  // namespace

struct StoreServer::Visitor {
  Descriptor control;  // a copy of the descriptor, for shutdown()
  std::string name;
  bool known = false;  // has proved that it knows the secret
  bool gone = false;
  std::thread thread;
};

StoreServer::StoreServer(const std::string& address, int port, std::string secret,
                         std::function<void(const std::string&, const std::string&)> refused)
    : secret_(std::move(secret)), refused_(std::move(refused)), listener_(listen_on(address, port)) {
  accepting_ = std::thread([this] { accept(); });
}

StoreServer::~StoreServer() {
  contents_.close();
  {
    const std::lock_guard lock(lock_);
    closing_ = true;
    for (const auto& visitor : visitors_) ::shutdown(visitor->control.get(), SHUT_RDWR);
  }
  ::shutdown(listener_.get(), SHUT_RDWR);
  accepting_.join();
  for (const auto& visitor : visitors_) visitor->thread.join();
}

void StoreServer::accept() {
  while (true) {
    pollfd waiting{listener_.get(), POLLIN, 0};
    (void)::poll(&waiting, 1, /*ms=*/1000);
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    Descriptor socket(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC));
    const bool full = socket.get() < 0 && (errno == EMFILE || errno == ENFILE);
    if (full) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::lock_guard lock(lock_);
    if (closing_) return;
    std::erase_if(visitors_, [](const auto& visitor) {
      if (visitor->gone) visitor->thread.join();
      return visitor->gone;
    });
    if (socket.get() < 0) continue;
    limit_strangers();
    answer_at_once(socket.get());
    visitors_.push_back(std::make_unique<Visitor>());
    Visitor& visitor = *visitors_.back();
    visitor.control = Descriptor(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
    visitor.name = name_of(from, length);
    visitor.thread =
        std::thread([this, &visitor, own = std::move(socket)]() mutable { serve(visitor, std::move(own)); });
  }
}

// Strangers who stay silent must not keep the sites of the run out: the one that came first must leave.
void StoreServer::limit_strangers() {
  Visitor* first = nullptr;
  int strangers = 0;
  for (const auto& visitor : visitors_) {
    if (visitor->known || visitor->gone) continue;
    if (first == nullptr) first = visitor.get();
    ++strangers;
  }
  if (strangers >= kMostStrangers) ::shutdown(first->control.get(), SHUT_RDWR);
}

// Programs of another kind leave, or stay silent, when they are greeted.
Channel StoreServer::greet(Descriptor socket, const std::string& who) {
  const char* why = "it left without a proof that it knows the secret";
  try {
    return Channel::as_server(std::move(socket), secret_, seconds_from_now(kProofS));
  } catch (const Silent&) {
    why = "it did not prove in time that it knows the secret";
  } catch (const ConnectionLost&) {
  }
  const std::lock_guard lock(lock_);
  if (!closing_) refused_(who, why);
  throw ConnectionLost(why);
}

void StoreServer::serve(Visitor& visitor, Descriptor socket) {
  try {
    Channel channel = greet(std::move(socket), visitor.name);
    {
      const std::lock_guard lock(lock_);
      visitor.known = true;
    }
    while (true) {
      const StoreRequest request = request_from(channel.receive(seconds_from_now(kRequestS)));
      channel.send(to_text(contents_.answer(request)), seconds_from_now(kAnswerS));
    }
  } catch (const NotAuthentic& error) {
    refused_(visitor.name, error.what());
  } catch (const std::exception&) {  // the visitor has gone
  }
  const std::lock_guard lock(lock_);
  ::shutdown(visitor.control.get(), SHUT_RDWR);
  visitor.gone = true;
}

Descriptor connect_to(const std::string& address, int port, Deadline deadline) {
  std::string why = "no address";
  try {
    const Addresses found = addresses_of(address, port, 0);
    for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
      Descriptor socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const bool failed = ::connect(socket.get(), one->ai_addr, one->ai_addrlen) != 0;
      why = failed ? std::strerror(errno) : "no answer";
      if (failed && errno == EINPROGRESS) {
        why = "no answer in time";
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
        pollfd waiting{socket.get(), POLLOUT, 0};
        (void)::poll(&waiting, 1, std::max(0, static_cast<int>(left.count())));
      }
      int error = 0;
      socklen_t length = sizeof error;
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      sockaddr_storage peer{};
      length = sizeof peer;
      if (error == 0 && ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer), &length) == 0) {
        answer_at_once(socket.get());
        return socket;
      }
      if (error != 0) why = std::strerror(error);
    }
  } catch (const std::runtime_error& error) {
    why = error.what();
  }
  throw ConnectionLost(why);
}

}  // namespace fomoe::trainer
