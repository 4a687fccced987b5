// One executed round in a form for drawing: the spans in which each node computed, waited and sent.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/inputs/enum_names.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// transfer: from the moment the node is ready for the first byte to the last byte sent and received, waiting
/// included. under_way: bytes of the node are in flight. upkeep: validation, checkpoints and logs between
/// rounds.
enum class SpanKind { compute, transfer, under_way, upkeep };
constexpr auto enum_names(SpanKind) {
  return std::to_array<EnumName<SpanKind>>({{SpanKind::compute, "compute"},
                                            {SpanKind::transfer, "transfer"},
                                            {SpanKind::under_way, "bytes under way"},
                                            {SpanKind::upkeep, "upkeep"}});
}

struct RoundSpan {
  std::int32_t node = 0;
  SpanKind kind = SpanKind::compute;
  std::string what;               // names of the operations; empty for under_way
  double start_s = 0, end_s = 0;  // seconds since the round began
};

struct RoundTimeline {
  std::int64_t round = 0;  // index in the plan
  double duration_s = 0;
  double resolution_s = 0;       // spans with a shorter gap are merged
  std::vector<RoundSpan> spans;  // sorted by node, kind and start
  std::int32_t left_out_nodes = 0;
};

/// The middle one of the executed rounds, since the first round begins without flows and the last one ends
/// without compute that hides transfers. Spans that extend into neighbouring rounds are cut. Shows at most
/// the first 16 nodes.
RoundTimeline round_timeline(const Plan& plan, const Timeline& timeline);

}  // namespace fomoe::costmodel
