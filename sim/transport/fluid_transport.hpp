// Messages between ideal hosts: a message waits for the latency, and then shares its links fairly with others
// (sim/fluid). A connection has no windows; what limits its rate in the long run is a cap.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/transport/transport.hpp"

namespace fomoe::sim {

class FluidTransport : public Transport {
 public:
  /// `platform` must be the effective platform (costmodel::effective_platform). The references must outlive
  /// the object.
  FluidTransport(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform,
                 const costmodel::NetworkModel& network, std::uint64_t seed)
      : FluidTransport(nodes, platform, without_flow_limits(platform, network), network, seed) {}

  [[nodiscard]] Fluid& fluid() override { return fluid_; }
  void restart(double clock_s, bool held, std::uint64_t stream) override;
  std::unique_ptr<Message> message(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes,
                                   MessageEvents& events, FlowRef ref) override;
  void cancel_all() override { fluid_.cancel_all(); }

 protected:
  /// `links` is what is simulated of the platform.
  FluidTransport(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform,
                 const platforms::Platform& links, const costmodel::NetworkModel& network,
                 std::uint64_t seed);
  /// The jitter of a pair's next message, in seconds.
  double draw_jitter_s(costmodel::NodeId from, costmodel::NodeId to);
  /// Connections of a flow of the pair.
  [[nodiscard]] int connections(costmodel::NodeId from, costmodel::NodeId to) const {
    return costmodel::connections_of(network_, fluid_.platform().path(site(from), site(to)));
  }

 private:
  friend class FluidMessage;
  using Pair = Fluid::Pair;
  /// Whether a message of the pair takes its uplink when it is sent, and its downlink when it arrives. If all
  /// latencies are equal and no link changes, this makes no difference: the message may then take both when
  /// it arrives.
  [[nodiscard]] bool departs_early(costmodel::NodeId from, costmodel::NodeId to) const {
    return fluid_.departures_matter() && fluid_.leaves_site(from, to) && fluid_.latency_s(from, to) > 0;
  }
  /// The greatest rate of the pair's connection, by TCP's window and loss; infinite if nothing limits it.
  [[nodiscard]] double cap_bytes_per_s(const platforms::Platform& platform, Pair pair) const;
  /// The caps of connections that may limit a message.
  [[nodiscard]] std::map<Pair, double> caps(const platforms::Platform& platform) const;
  [[nodiscard]] std::map<std::pair<int, int>, double> caps_of_shared(
      const platforms::Platform& platform) const;
  [[nodiscard]] static platforms::Platform without_flow_limits(platforms::Platform platform,
                                                               const costmodel::NetworkModel& network);
  [[nodiscard]] double payload_s(costmodel::NodeId node, double bytes) const override {
    const bool prepares = nodes_[static_cast<std::size_t>(node)].kind != costmodel::NodeKind::store;
    return prepares && network_.payload_bytes_per_s ? bytes / *network_.payload_bytes_per_s : 0;
  }
  [[nodiscard]] int site(costmodel::NodeId node) const { return nodes_[static_cast<std::size_t>(node)].site; }

 protected:
  const std::vector<costmodel::Node>& nodes_;
  const std::uint64_t seed_;
  std::uint64_t stream_ = 0;
  const std::map<std::pair<int, int>, double> shared_caps_;  // by sites
  Fluid fluid_;

 private:
  std::vector<std::uint64_t> draws_;  // [from · nodes + to]: draws of jitter; empty without jitter
};

}  // namespace fomoe::sim
