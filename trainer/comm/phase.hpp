// One phase of a transfer: the segments of many exchanges, gathered into one message for each pair of nodes.
// A phase is laid out before there is anything to send, so that its receives can be posted early.
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
  /// `channel` is the channel of the transfer; see Transport::exchange.
  explicit Phase(Transport& transport, int channel = 0) : transport_(&transport), channel_(channel) {}

  /// Adds a segment that node `from` sends to node `to`. Every process adds the segments that concern it in
  /// the order of the plan; the order is how a receiver finds them in the message. run() calls `encode` where
  /// `from` is hosted here, and `received` where `to` is hosted here, after everything has arrived. Either
  /// function may be empty in a process that does not host its node.
  void add(costmodel::NodeId from, costmodel::NodeId to, costmodel::TrafficClass traffic, std::int64_t bytes,
           std::function<at::Tensor()> encode, std::function<void(const at::Tensor&)> received);
  /// Posts the receives, once all segments have been added; see Transport::expect. The phases of a channel
  /// must be expected in the order in which they run.
  void expect();
  /// Sends and receives all segments. A call of expect() before it is optional.
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
  std::vector<Message> messages_;  // in the order of bundles_
  std::vector<Segment> empty_;     // segments of 0 bytes: received() is called without a message
};

}  // namespace fomoe::trainer
