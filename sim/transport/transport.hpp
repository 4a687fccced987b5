// Sends over TCP connections: what happens to a flow between a node's wish to send and the arrival of its
// last byte, on top of the links (sim/fluid).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/fluid/fluid.hpp"
#include "sim/transport/connections.hpp"

namespace fomoe::sim {

struct Departure;  // a flow whose first bytes are on their way; defined in transport.cpp

class Transport {
 public:
  using Callback = Fluid::Callback;

  /// `platform` must be the effective platform (costmodel::effective_platform).
  Transport(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform,
            const costmodel::NetworkModel& network, std::uint64_t seed);

  [[nodiscard]] Fluid& fluid() { return fluid_; }
  /// Fluid::restart(), with connections that have carried nothing. `stream` selects the random draws.
  void restart(double clock_s, bool held, std::uint64_t stream);

  [[nodiscard]] double call_overhead_s() const { return network_.call_overhead_s; }
  /// Seconds that a node spends on preparing a payload of `bytes` before it sends it.
  [[nodiscard]] double payload_s(double bytes) const {
    return network_.payload_bytes_per_s ? bytes / *network_.payload_bytes_per_s : 0;
  }
  /// The time from a node's wish to send until the first byte of the flow arrives (Connections::wait). Must
  /// be called once before send(), because each call counts as a use of the connection and of the ports.
  Wait wait(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes,
            const ConcurrentFlows& concurrent);
  /// Seconds by which the ramp takes longer because other flows have ended since it began
  /// (Connections::longer_ramp_s).
  double longer_ramp_s(costmodel::NodeId from, costmodel::NodeId to, Ramp& ramp);
  /// Whether a flow of the pair takes its uplink when it is sent, and its downlink when it arrives. If all
  /// latencies are equal, this makes no difference: the flow may then take both when it arrives.
  [[nodiscard]] bool departs_early(costmodel::NodeId from, costmodel::NodeId to) const {
    return fluid_.unequal_latencies() && fluid_.leaves_site(from, to) && fluid_.latency_s(from, to) > 0;
  }
  /// Begins to send a flow: from now on it takes all links on its way except those at the receiver. Its first
  /// byte arrives after the latency. Calls `left`, if it is not empty, when the last byte has left.
  std::shared_ptr<Departure> depart(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes,
                                    Callback left);
  /// Stops sending, because the first byte has arrived at a receiver that is not ready yet.
  void hold(Departure& departure);
  /// Ends all flows without calling `arrived`, and closes all connections.
  void cancel_all();
  /// Starts a flow without latency, or goes on with one whose first byte has arrived. Calls `arrived` when
  /// the last byte has arrived.
  void send(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes,
            std::shared_ptr<Departure> departure, Callback arrived);

 private:
  using Pair = Fluid::Pair;
  [[nodiscard]] std::size_t site(costmodel::NodeId node) const {
    return static_cast<std::size_t>(nodes_[static_cast<std::size_t>(node)].site);
  }
  /// The caps of connections that may limit a flow.
  [[nodiscard]] std::map<Pair, double> caps(const platforms::Platform& platform) const;
  /// Starts bytes that count for the connection when they have arrived.
  void begin(Pair pair, std::int64_t bytes, Fluid::Part part, Callback ended);
  /// Goes on with a flow when its first byte has arrived and the receiver is ready.
  void arrive(Departure& departure, Callback arrived);

  const std::vector<costmodel::Node>& nodes_;
  const costmodel::NetworkModel& network_;
  Connections connections_;
  Fluid fluid_;
  std::vector<int> sending_, receiving_;  // [site]: flows to and from other sites that have not arrived
};

}  // namespace fomoe::sim
