// Estimate of the spans with bytes in flight, for executors that observe operations but not bytes.
#pragma once
#include <vector>

#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// A node that enters a transfer first waits; bytes count as in flight from the entry of any other node until
/// the node is done. Returns one span for each transfer and node of `intervals` that is still in the transfer
/// then.
std::vector<FlowSpan> seen_flows(const std::vector<Interval>& intervals);

}  // namespace fomoe::costmodel
