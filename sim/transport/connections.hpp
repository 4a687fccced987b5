// The TCP connections between nodes: the delay before the first byte of a flow (latency, jitter, window
// growth), and the greatest rate of a connection (window, loss).
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::sim {

/// Number of flows of one step of a collective that share an uplink or downlink with a flow that starts. The
/// flow itself counts. Flows of other nodes of the site, and of other collectives at the same time, do not
/// count.
struct ConcurrentFlows {
  int sent = 1;      // flows that its sender sends
  int received = 1;  // flows that its receiver receives
};

/// The slow start of a flow: its window doubles in every round trip until the flow can use its share of the
/// links. `waited_s` is the time by which the flow is later for it than at that share from the beginning.
struct Ramp {
  double window_bytes = 0;  // at the start
  std::int64_t bytes = 0;
  double bytes_per_s = 0;  // the share
  double waited_s = 0;
};
/// How long a flow waits for its first byte, in seconds: `ramp.waited_s` and the delays of the way.
struct Wait {
  double seconds = 0;
  Ramp ramp;
};

/// One connection for each ordered pair of nodes, with `streams` TCP streams that share all its flows.
class Connections {
 public:
  using PlatformNow = std::function<const platforms::Platform&()>;
  /// `platform` returns the present state of the effective platform (costmodel::effective_platform). The
  /// references must outlive the object.
  Connections(const std::vector<costmodel::Node>& nodes, const costmodel::NetworkModel& network,
              std::uint64_t seed, PlatformNow platform);

  /// Starts anew with connections that have carried nothing. `stream` selects the random draws that follow.
  void restart(std::uint64_t stream);
  /// Later flows use new connections. Their random draws continue.
  void close_all();

  /// The time from a node's wish to send until the first byte moves: latency + jitter + slow start. The
  /// result is 0 inside a site. A call counts as a use of the pair's connection and draws a new
  /// jitter. `concurrent` counts the flows that start together with this one.
  Wait wait(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes,
            const ConcurrentFlows& concurrent, double now_s);
  /// Seconds by which the ramp takes longer because `concurrent` flows leave the flow a larger share of the
  /// links than when its ramp began: its window has to grow further. Updates the ramp.
  double longer_ramp_s(costmodel::NodeId from, costmodel::NodeId to, Ramp& ramp,
                       const ConcurrentFlows& concurrent);
  /// Records that `bytes` of a flow have arrived, which widens the connection's congestion window. Flows of
  /// one pair that are in flight at the same time do not widen each other's window.
  void ended(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes, double now_s);
  /// The greatest rate of the pair's connection, by TCP's window and loss; infinite if nothing limits it.
  [[nodiscard]] double cap_bytes_per_s(costmodel::NodeId from, costmodel::NodeId to) const;

 private:
  struct Connection {
    double last_sent_s = 0;   // when its last byte so far left
    double window_bytes = 0;  // congestion window
    double pipe_bytes =
        0;  // largest bandwidth-delay product so far: a flow's share of the links × round trip
    std::uint64_t flows = 0;             // since it was opened
    std::uint64_t draws = 0;             // of jitter, since the last restart()
    std::int64_t outstanding_bytes = 0;  // that nodes wish to send and that have not arrived
  };
  [[nodiscard]] double round_trip_s(int from_site, int to_site) const;
  /// The flow's share of the links, if flows share their ports equally.
  [[nodiscard]] double share_bytes_per_s(costmodel::NodeId from, costmodel::NodeId to,
                                         const ConcurrentFlows& concurrent) const;
  [[nodiscard]] int site(costmodel::NodeId node) const { return nodes_[static_cast<std::size_t>(node)].site; }
  Connection& connection(costmodel::NodeId from, costmodel::NodeId to);
  /// A pseudorandom number in [0, 1), which depends on the pair, the seed, the stream and `which` only.
  [[nodiscard]] double draw(costmodel::NodeId from, costmodel::NodeId to, std::uint64_t which) const;

  const std::vector<costmodel::Node>& nodes_;
  PlatformNow platform_;
  const costmodel::NetworkModel& network_;
  std::uint64_t seed_;
  std::uint64_t stream_ = 0;
  std::vector<Connection> connections_;  // [from · nodes + to]; empty if the network model needs no state
};

}  // namespace fomoe::sim
