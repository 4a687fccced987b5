#include "trainer/store/channel.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "trainer/store/secret.hpp"

namespace fomoe::trainer {
namespace {

constexpr std::size_t kNonceBytes = 32, kMacBytes = std::tuple_size_v<Mac>;

void wait_until(int descriptor, short events, Deadline deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) throw Silent("no answer in time");
    pollfd waiting{descriptor, events, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1 << 30)));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw ConnectionLost(std::strerror(errno));
  }
}

std::string code(std::string_view key, const std::string& text) {
  return std::string(text_of(hmac_sha256(key, text)));
}

std::string big_endian(std::uint64_t number, int bytes) {
  std::string text;
  for (int byte = bytes - 1; byte >= 0; --byte) text += static_cast<char>(number >> (8 * byte));
  return text;
}

}  // namespace

std::string read_bytes(int descriptor, std::size_t bytes, Deadline deadline) {
  std::string text(bytes, '\0');
  for (std::size_t at = 0; at < bytes;) {
    wait_until(descriptor, POLLIN, deadline);
    const ssize_t got = ::recv(descriptor, text.data() + at, bytes - at, MSG_DONTWAIT);
    if (got > 0) {
      at += static_cast<std::size_t>(got);
    } else if (got == 0) {
      throw ConnectionLost("the other end has closed the connection");
    } else if (errno != EAGAIN && errno != EINTR) {
      throw ConnectionLost(std::strerror(errno));
    }
  }
  return text;
}

void write_bytes(int descriptor, std::string_view text, Deadline deadline) {
  while (!text.empty()) {
    wait_until(descriptor, POLLOUT, deadline);
    const ssize_t sent = ::send(descriptor, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      text.remove_prefix(static_cast<std::size_t>(sent));
    } else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      throw ConnectionLost(std::strerror(errno));
    }
  }
}

Deadline seconds_from_now(double seconds) {
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                std::chrono::duration<double>(seconds));
}

Channel::Channel(Descriptor socket, std::string sending_key, std::string receiving_key)
    : socket_(std::move(socket)),
      sending_key_(std::move(sending_key)),
      receiving_key_(std::move(receiving_key)) {}

Channel Channel::as_server(Descriptor socket, const std::string& secret, Deadline deadline) {
  const int descriptor = socket.get();
  const std::string own = random_nonce();
  write_bytes(descriptor, std::string(kGreeting) + own, deadline);
  const std::string answer = read_bytes(descriptor, kNonceBytes + kMacBytes, deadline);
  const std::string nonces = own + answer.substr(0, kNonceBytes);
  if (!equal(answer.substr(kNonceBytes), code(secret, "client" + nonces)))
    throw NotAuthentic("it does not know the secret");
  write_bytes(descriptor, code(secret, "server" + nonces), deadline);
  return {std::move(socket), code(secret, "to client" + nonces), code(secret, "to server" + nonces)};
}

Channel Channel::as_client(Descriptor socket, const std::string& secret, Deadline deadline) {
  const int descriptor = socket.get();
  const std::string greeting = read_bytes(descriptor, kGreeting.size() + kNonceBytes, deadline);
  if (!greeting.starts_with(kGreeting)) throw NotAuthentic("it does not ask for a secret");
  const std::string own = random_nonce(), nonces = greeting.substr(kGreeting.size()) + own;
  write_bytes(descriptor, own + code(secret, "client" + nonces), deadline);
  std::string answer;
  try {
    answer = read_bytes(descriptor, kMacBytes, deadline);
  } catch (const ConnectionLost&) {
    throw NotAuthentic("it has refused the secret");
  }
  if (!equal(answer, code(secret, "server" + nonces))) throw NotAuthentic("it does not know the secret");
  return {std::move(socket), code(secret, "to server" + nonces), code(secret, "to client" + nonces)};
}

void Channel::send(const std::string& message, Deadline deadline) {
  if (message.size() > kMostBytes) throw std::length_error("a message of more than 16 MiB");
  const std::string framed = big_endian(message.size(), 4) + message;
  const std::string number = big_endian(sent_++, 8);
  write_bytes(socket_.get(), framed + code(sending_key_, number + framed), deadline);
}

std::string Channel::receive(Deadline deadline) {
  const std::string length = read_bytes(socket_.get(), 4, deadline);
  std::uint32_t bytes = 0;
  for (const char byte : length) bytes = bytes << 8 | static_cast<std::uint8_t>(byte);
  if (bytes > kMostBytes) throw NotAuthentic("a message is longer than any that a site sends");
  std::string message = read_bytes(socket_.get(), bytes, deadline);
  const std::string its_code = read_bytes(socket_.get(), kMacBytes, deadline);
  if (!equal(its_code, code(receiving_key_, big_endian(received_++, 8) + length + message)))
    throw NotAuthentic("somebody has changed a message");
  return message;
}

}  // namespace fomoe::trainer
