// A TCP connection that carries one JSON object per line. Every operation has a time limit.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "platforms/support/descriptor.hpp"

namespace fomoe::probe {

/// The other end closed the connection, or the network failed.
class ConnectionLost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Seconds of a monotonic clock.
double now_s();

/// Waits until data or a connection can be read, or until the given time. Returns whether it can be read.
[[nodiscard]] bool readable(const Descriptor& socket, double until_s);

/// Listens on all addresses of this machine, including IPv6 if available. `port` 0 chooses any free port.
/// Returns nothing if the port is taken; throws std::runtime_error for any other error.
std::optional<Descriptor> listen_on(int port);
/// Accepts a connection; returns nothing if none came in time. `peer` is set to the numeric address of the
/// other end.
std::optional<Descriptor> accept_from(const Descriptor& listener, double until_s,
                                      std::string* peer = nullptr);
/// Connects, and retries until the given time if nobody listens yet. Throws ConnectionLost.
Descriptor connect_to(const std::string& host, int port, double until_s);

class LineSocket {
 public:
  /// Sets keep-alive options, so that a dead peer is noticed within a minute, even if nothing is sent.
  explicit LineSocket(Descriptor socket);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Throws ConnectionLost.
  void send(const nlohmann::json& line);
  /// Receives one line; returns nothing if no whole line arrives in time. Throws ConnectionLost if the other
  /// end closes, or sends something other than a JSON object in a line of at most 1 MiB.
  std::optional<nlohmann::json> receive(double until_s);

 private:
  std::optional<nlohmann::json> take_line();

  Descriptor socket_;
  std::string read_;
};

/// The whole number at a key of a message. nlohmann::json would convert any number, also one that is too
/// large for an int. Throws ConnectionLost if there is none from 0 to 10⁹.
int whole_number(const nlohmann::json& message, const char* key);

}  // namespace fomoe::probe
