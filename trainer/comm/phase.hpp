// One phase of a transfer: segments of many exchanges, gathered into one message for each pair of nodes. It
// is laid out before there is anything to send, so that its receives can be posted early.
#pragma once
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "trainer/comm/transport.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

class Phase {
 public:
  /// `channel`: of the transfer; see Transport::exchange.
  explicit Phase(Transport& transport, int channel = 0) : transport_(&transport), channel_(channel) {}

  /// A segment from node to node. Every process adds those that concern it in the plan's order, which is how
  /// a receiver finds them in the message. `encode` is called in run() where `from` is hosted here;
  /// `received` where `to` is, after everything has arrived. Both may be empty at the other end.
  void add(costmodel::NodeId from, costmodel::NodeId to, costmodel::TrafficClass traffic, std::int64_t bytes,
           std::function<at::Tensor()> encode, std::function<void(const at::Tensor&)> received);
  /// Everything is added; see Transport::expect. Phases of a channel are expected in the order in which they
  /// run.
  void expect();
  /// With or without having been expected.
  void run();

 private:
  struct Segment {
    std::int64_t offset = 0, bytes = 0;
    std::function<at::Tensor()> encode;
    std::function<void(const at::Tensor&)> received;
  };
  struct Bundle {
    BytesByClass bytes_of{};
    std::vector<Segment> segments;
  };
  void lay_out();

  Transport* transport_;
  int channel_;
  std::map<std::pair<costmodel::NodeId, costmodel::NodeId>, Bundle> bundles_;
  std::vector<Message> messages_;  // in the order of the bundles
  std::vector<Segment> empty_;     // arrive without being sent
};

}  // namespace fomoe::trainer
