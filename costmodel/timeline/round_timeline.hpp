// One executed round, small enough to draw: who computed, waited and sent when.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// transfer: from wanting the first byte to the last one sent and received, waiting included.
/// under_way: bytes of the node are on their way.
enum class SpanKind { compute, transfer, under_way };
inline const char* to_string(SpanKind kind) {
  return kind == SpanKind::compute ? "compute" : kind == SpanKind::transfer ? "transfer" : "bytes under way";
}

struct RoundSpan {
  std::int32_t node = 0;
  SpanKind kind = SpanKind::compute;
  std::string what;               // names of the operations; empty for bytes under way
  double start_s = 0, end_s = 0;  // since the round began
};

struct RoundTimeline {
  std::int64_t round = 0;  // of the plan
  double duration_s = 0;
  double resolution_s = 0;       // spans with a shorter gap between them are shown as one
  std::vector<RoundSpan> spans;  // by node, kind and start
  std::int32_t left_out_nodes = 0;
};

/// The middle one of the rounds that were executed: the first begins with nothing under way, the last ends
/// with nothing to hide behind. What runs over from or into its neighbours is cut at the round's ends. At
/// most 16 nodes, the first ones.
RoundTimeline round_timeline(const Plan& plan, const Timeline& timeline);

}  // namespace fomoe::costmodel
