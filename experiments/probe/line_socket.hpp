// A TCP connection that carries one JSON object a line, with a time limit on everything.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

namespace fomoe::probe {

/// The other end is gone, or this end of the network.
class ConnectionLost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Seconds of a clock that only goes forward.
double now_s();

/// Closes what it holds.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { reset(); }
  [[nodiscard]] int get() const { return descriptor_; }
  void reset();
  /// True where something can be read, or the connection accepted, before that moment.
  [[nodiscard]] bool readable(double until_s) const;

 private:
  int descriptor_;
};

/// On all of this machine's addresses, IPv6 where it is there. `port` 0: any free one. Empty where the port
/// is taken; throws std::runtime_error for anything else.
std::optional<Socket> listen_on(int port);
/// Empty where nobody came. `peer` becomes the other end's numeric address.
std::optional<Socket> accept_from(const Socket& listener, double until_s, std::string* peer = nullptr);
/// Tries until then, also where nobody listens yet. Throws ConnectionLost.
Socket connect_to(const std::string& host, int port, double until_s);

class LineSocket {
 public:
  /// What a dead machine leaves behind is noticed within a minute, also while nothing is sent.
  explicit LineSocket(Socket socket);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Throws ConnectionLost.
  void send(const nlohmann::json& line);
  /// Empty where no whole line has come by then. Throws ConnectionLost where the other end closed or sends
  /// what is no JSON object in a line of at most 1 MiB.
  std::optional<nlohmann::json> receive(double until_s);

 private:
  std::optional<nlohmann::json> take_line();

  Socket socket_;
  std::string read_;
};

}  // namespace fomoe::probe
