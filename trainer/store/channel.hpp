// A TCP connection whose two ends have proved to each other that they know the same secret. Each message
// carries a code that only they can make, so nobody else can change, repeat, leave out or add messages.
// Messages are not encrypted, but the secret never appears in them.
//
//   server → client   "fomoe-1\n", nonce s (32 bytes)
//   client → server   nonce c (32 bytes), HMAC(secret, "client" s c)
//   server → client   HMAC(secret, "server" s c); if the client's code is wrong, the server closes instead
//   then both ways    length (4 bytes, most significant first), message, HMAC(key, number length message)
//
// The key is HMAC(secret, "to server" s c) in one direction and HMAC(secret, "to client" s c) in the other.
// The number counts the messages of a direction (8 bytes). The nonces make codes of earlier connections
// worthless.
#pragma once
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "platforms/support/descriptor.hpp"

namespace fomoe::trainer {

using Deadline = std::chrono::steady_clock::time_point;
Deadline seconds_from_now(double seconds);

/// The other end has gone, or has not answered in time.
class ConnectionLost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The other end has not said what it has to say in time.
class Silent : public ConnectionLost {
  using ConnectionLost::ConnectionLost;
};
/// The other end does not know the secret, or somebody has changed what it said.
class NotAuthentic : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Both functions throw ConnectionLost, and Silent at the deadline.
std::string read_bytes(int socket, std::size_t bytes, Deadline deadline);
void write_bytes(int socket, std::string_view text, Deadline deadline);

class Channel {
 public:
  static constexpr std::string_view kGreeting = "fomoe-1\n";  // what the server says first

  /// Both functions exchange the codes, and throw ConnectionLost or NotAuthentic.
  static Channel as_server(Descriptor socket, const std::string& secret, Deadline deadline);
  static Channel as_client(Descriptor socket, const std::string& secret, Deadline deadline);

  /// Both functions throw ConnectionLost, and NotAuthentic if a message is not what the other end sent next.
  /// After an error the channel must not be used again.
  void send(const std::string& message, Deadline deadline);
  std::string receive(Deadline deadline);

  static constexpr std::uint32_t kMostBytes = 1 << 24;  // of a message

 private:
  Channel(Descriptor socket, std::string sending_key, std::string receiving_key);
  Descriptor socket_;
  std::string sending_key_, receiving_key_;
  std::uint64_t sent_ = 0, received_ = 0;
};

}  // namespace fomoe::trainer
