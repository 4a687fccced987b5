// Serves the store of a run to the processes that know its secret.
#pragma once
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "trainer/store/channel.hpp"
#include "trainer/store/store_contents.hpp"

namespace fomoe::trainer {

class StoreServer {
 public:
  /// Listens on `port` of `address`, or on all addresses if it is empty. `refused` is called with the address
  /// of whoever was refused, and why, from other threads. Throws std::runtime_error if it cannot listen.
  StoreServer(const std::string& address, int port, std::string secret,
              std::function<void(const std::string& who, const std::string& why)> refused);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  [[nodiscard]] StoreContents& contents() { return contents_; }

 private:
  struct Visitor;
  void accept();
  Channel greet(Descriptor socket, const std::string& who);
  void serve(Visitor& visitor, Descriptor socket);
  void limit_strangers();

  std::string secret_;
  std::function<void(const std::string&, const std::string&)> refused_;
  StoreContents contents_;
  Descriptor listener_;
  std::mutex lock_;  // of visitors_
  std::list<std::unique_ptr<Visitor>> visitors_;
  bool closing_ = false;
  std::thread accepting_;
};

/// Connects to a port of another machine. Throws ConnectionLost.
Descriptor connect_to(const std::string& address, int port, Deadline deadline);

}  // namespace fomoe::trainer
