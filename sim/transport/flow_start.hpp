// What a flow waits for before its first byte moves, and how fast it can get: latency, jitter and TCP.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::sim {

/// How many flows of its collective's step share a link with one that starts, itself included. Those of other
/// nodes of the site, and of other collectives at the same time, are not counted.
struct Beside {
  int sent = 1;      // by its sender
  int received = 1;  // by its receiver
};

class FlowStart {
 public:
  /// `platform` is the effective one.
  FlowStart(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform,
            const costmodel::NetworkModel& network, std::uint64_t seed);

  /// As new: no connection was ever used.
  void restart();

  /// Seconds from a node's wish to send to the first byte: latency + jitter + slow start. Counts as a use
  /// of the pair's connection; jitter is drawn anew every time. `delivered_bytes`: of a flow before it on the
  /// connection that has not ended. `beside`: flows that start with it.
  double wait_s(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes, double delivered_bytes,
                const Beside& beside, double now_s);
  /// All of them have arrived, and widen the connection's window. Flows of one pair that are under way at the
  /// same time share a connection and do not widen each other's.
  void ended(costmodel::NodeId from, costmodel::NodeId to, double bytes, double now_s);
  /// What the sender's kernel takes off its hands: the model's, or what Linux allows a flow of bbr like those
  /// that have begun on the connection.
  [[nodiscard]] double send_buffer_bytes(costmodel::NodeId from, costmodel::NodeId to) const;
  /// A number in [0, 1), for each pair and seed another.
  [[nodiscard]] double draw(costmodel::NodeId from, costmodel::NodeId to, std::uint64_t which = 0) const;
  /// The most that one flow of the pair gets.
  [[nodiscard]] double cap_bytes_per_s(costmodel::NodeId from, costmodel::NodeId to) const;

 private:
  struct Connection {
    double last_used_s = -1;  // never
    double sent_bytes = 0;    // since it started, or started again
    double pipe_bytes = 0;    // the most that a flow's share of the links and the round trip hold
    std::uint64_t flows = 0;
  };
  [[nodiscard]] double round_trip_s(int from_site, int to_site) const;
  [[nodiscard]] int site(costmodel::NodeId node) const { return nodes_[static_cast<std::size_t>(node)].site; }
  Connection& connection(costmodel::NodeId from, costmodel::NodeId to);
  [[nodiscard]] const Connection& connection(costmodel::NodeId from, costmodel::NodeId to) const;

  const std::vector<costmodel::Node>& nodes_;
  const platforms::Platform& platform_;
  const costmodel::NetworkModel& network_;
  std::uint64_t seed_;
  std::vector<Connection> connections_;  // of ordered pairs of nodes; empty where nothing depends on them
};

}  // namespace fomoe::sim
