// The timeline of a run: the observations that every executor of a plan returns.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// Upkeep is no operation of the plan.
inline constexpr std::int32_t kNoOp = -1;
inline constexpr const char* kUpkeepName = "validation, checkpoints, logs";

/// One node's part of an operation, from the time at which it may start to its end. A transfer starts when
/// the node is ready for the first byte and ends with its last byte sent and received. Upkeep counts to the
/// round that begins after it.
struct Interval {
  std::int32_t node = 0;
  std::int32_t op = 0;     // kNoOp: upkeep
  std::int64_t round = 0;  // position in the executed sequence
  Activity activity = Activity::compute;
  double start_s = 0;
  double end_s = 0;
};

/// A span in which some flow of the node is in flight, latency included. The remainder of a transfer's
/// interval is time that the node waits for others.
struct FlowSpan {
  std::int32_t node = 0;
  std::int64_t round = 0;
  double start_s = 0;
  double end_s = 0;
};

/// One flow, from its first byte to its last; recorded on request.
struct FlowRecord {
  std::int32_t from = 0, to = 0;  // node ids
  double bytes = 0;
  double start_s = 0, end_s = 0;
};

/// Bytes sent for each (from, to) pair of nodes in the whole executed sequence. Pairs that send nothing have
/// no entry: with thousands of nodes, most pairs do not send.
struct PairBytes {
  std::map<std::pair<int, int>, double> bytes;  // by (from, to)
  [[nodiscard]] double at(int from, int to) const {
    const auto found = bytes.find({from, to});
    return found == bytes.end() ? 0 : found->second;
  }
  void add(int from, int to, double more) {
    if (more != 0) bytes[{from, to}] += more;
  }
  void divide_by(double divisor) {
    for (auto& [pair, sum] : bytes) sum /= divisor;
  }
};

/// A sequence of executed rounds, chained without a barrier.
struct Timeline {
  std::vector<std::int64_t> rounds;  // index in the plan of the round at each position
  std::vector<double> round_end_s;   // end of the last node, by position
  std::vector<Interval> intervals;
  std::vector<FlowSpan> flows;
  PairBytes sent;  // sum over the sequence
  std::vector<FlowRecord> flow_records;
  /// Names of the operations, by position. Generating the plan again to find the names can take longer than
  /// its execution if there are many experts.
  std::vector<std::vector<std::string>> op_names;
  /// [node]: rounds in which the node took no part. Empty without rules of attendance.
  std::vector<std::int64_t> missed_rounds;
  std::vector<std::int64_t> missed_steps;  // [node]: optimiser steps of these rounds
  std::int64_t repeated_rounds = 0;        // rounds that were executed again after a failure
};

/// When the last of the rounds ends. That need not be the last one in order: without synchronisation, a fast
/// site is ahead. 0 without rounds.
double end_of(const Timeline& timeline);

/// Joins the timelines, each as if it began when the previous one ended.
Timeline concatenated(const std::vector<Timeline>& timelines);

}  // namespace fomoe::costmodel
