// A web server for one user on this machine. It has one thread: work that takes long runs in child processes,
// because the simulator must be called from a process without threads.
#pragma once
#include <cstdint>
#include <functional>

#include "experiments/explore/requests.hpp"

namespace fomoe::explore {

class Server {
 public:
  /// Listens on 127.0.0.1. Port 0 is any free port. Throws std::runtime_error if the port is in use.
  explicit Server(std::uint16_t port);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  [[nodiscard]] std::uint16_t port() const;

  /// Answers requests until SIGINT or SIGTERM arrives.
  void run(const std::function<Answer(const Request&)>& answer);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fomoe::explore
