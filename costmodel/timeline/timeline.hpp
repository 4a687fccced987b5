// When each node did what: the form in which an executor that runs a plan hands over its observations.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

enum class Activity : std::int32_t { compute, transfer };

/// A node's part of an operation: from when it may start to when it ends. For transfers that is from the
/// moment the node wants the first byte to its last byte sent and received.
struct Interval {
  std::int32_t node = 0;
  std::int32_t op = 0;
  std::int64_t round = 0;  // position in the executed sequence
  Activity activity = Activity::compute;
  double start_s = 0;
  double end_s = 0;
};

/// A time in which some flow of the node is under way, latency included. What a transfer's interval has
/// beyond these is waiting for others.
struct FlowSpan {
  std::int32_t node = 0;
  std::int64_t round = 0;
  double start_s = 0;
  double end_s = 0;
};

/// One flow, from its first byte to its last; recorded where asked for.
struct FlowRecord {
  std::int32_t from = 0, to = 0;  // nodes
  double bytes = 0;
  double start_s = 0, end_s = 0;
};

/// Bytes that crossed, for each (from, to) pair of nodes, row = from; in the whole executed sequence.
struct PairBytes {
  int nodes = 0;
  std::vector<double> bytes;
  explicit PairBytes(int n = 0)
      : nodes(n), bytes(static_cast<std::size_t>(n) * static_cast<std::size_t>(n), 0.0) {}
  [[nodiscard]] double at(int from, int to) const {
    return bytes[static_cast<std::size_t>(from * nodes + to)];
  }
  double& at(int from, int to) { return bytes[static_cast<std::size_t>(from * nodes + to)]; }
};

/// One executed sequence of rounds, chained without a barrier.
struct Timeline {
  std::vector<std::int64_t> rounds;  // plan round at each position
  std::vector<double> round_end_s;   // last node's end, per position
  std::vector<Interval> intervals;
  std::vector<FlowSpan> flows;
  PairBytes sent;  // Σ over the sequence
  std::vector<FlowRecord> flow_records;
  /// What the operations are called, by position: a plan of many experts takes longer to make again than to
  /// play.
  std::vector<std::vector<std::string>> op_names;
};

/// One after another, each as if it began when the one before had ended.
Timeline concatenated(const std::vector<Timeline>& timelines);

}  // namespace fomoe::costmodel
