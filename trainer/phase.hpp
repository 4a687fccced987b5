// One phase of a transfer: segments of many exchanges, gathered into one message for each pair of nodes.
#pragma once
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "trainer/torch.hpp"
#include "trainer/transport.hpp"

namespace fomoe::trainer {

class Phase {
 public:
  /// `channel`: of the transfer; see Transport::exchange.
  explicit Phase(Transport& transport, int channel = 0) : transport_(&transport), channel_(channel) {}

  /// A segment from node to node. Every process adds those that concern it in the plan's order, which is how
  /// a receiver finds them in the message. `encode` is called where `from` is hosted here, at once;
  /// `received` where `to` is, after run(). Both may be empty at the other end.
  void add(costmodel::NodeId from, costmodel::NodeId to, costmodel::TrafficClass traffic, std::int64_t bytes,
           const std::function<at::Tensor()>& encode, std::function<void(const at::Tensor&)> received);
  void run();

 private:
  struct Segment {
    std::int64_t offset = 0, bytes = 0;
    std::function<void(const at::Tensor&)> received;
  };
  struct Bundle {
    Message message;
    std::vector<at::Tensor> parts;
    std::vector<Segment> segments;
  };
  Transport* transport_;
  int channel_;
  std::map<std::pair<costmodel::NodeId, costmodel::NodeId>, Bundle> bundles_;
};

}  // namespace fomoe::trainer
