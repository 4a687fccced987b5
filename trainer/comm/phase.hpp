// One phase of a transfer: the segments of many exchanges, gathered into one message for each pair of nodes
// and, through a store, for each object.
// The sizes and places of all segments are determined before there is anything to send, so that the receives
// can be posted early.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "trainer/comm/transport.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

class Phase {
 public:
  /// `channel` is the channel of the transfer (see Transport::exchange), and `device` that on which segments
  /// are decoded (see Message::used_on).
  explicit Phase(Transport& transport, int channel = 0, at::Device device = at::kCPU)
      : transport_(&transport), channel_(channel), device_(device) {}

  /// Adds a segment that node `from` sends to node `to`. Every process adds the segments that its own nodes
  /// send or receive, in the order of the plan. A receiver finds a segment in its message by this order.
  /// run() calls `encode` in the process that hosts `from`. After everything has arrived, it calls `received`
  /// in the process that hosts `to`. In a process that hosts only one of the two nodes, the function of the
  /// other node may be empty.
  /// `object` is set if a store is an end.
  void add(costmodel::NodeId from, costmodel::NodeId to, const std::optional<StoredObject>& object,
           costmodel::TrafficClass traffic, std::int64_t bytes, std::function<at::Tensor()> encode,
           std::function<void(const at::Tensor&)> received);
  /// Posts the receives (see Transport::expect); call it after all segments have been added. For the phases
  /// of one channel, call expect() in the order in which the phases run.
  void expect();
  /// Sends and receives all segments. Calling expect() first is optional.
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
  at::Device device_;
  using Way = std::tuple<costmodel::NodeId, costmodel::NodeId, std::optional<StoredObject>>;  // from, to
  std::map<Way, Bundle> bundles_;
  std::vector<Message> messages_;  // in the order of bundles_
  std::vector<Segment> empty_;     // segments of 0 bytes: received() is called without a message
};

}  // namespace fomoe::trainer
