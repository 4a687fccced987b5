// Estimate of the spans with bytes in flight, for executors that observe operations but not bytes.
#pragma once
#include <vector>

#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// Estimates the spans with bytes in flight. A node that enters a transfer first waits. Its bytes count as in
/// flight from the entry of any other node until the node is done. Returns one span for each transfer and
/// node of `intervals` for which another node enters before the node is done.
std::vector<FlowSpan> seen_flows(const std::vector<Interval>& intervals);

}  // namespace fomoe::costmodel
