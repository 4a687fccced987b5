// When bytes were under way, as far as a run can tell that sees its operations and not its bytes.
#pragma once
#include <vector>

#include "costmodel/timeline/timeline.hpp"

namespace fomoe::costmodel {

/// A node that comes first to a transfer waits; as soon as any other has come, bytes flow, until the node has
/// done: a span for each transfer and node of `intervals` that has not left by then.
std::vector<FlowSpan> seen_flows(const std::vector<Interval>& intervals);

}  // namespace fomoe::costmodel
