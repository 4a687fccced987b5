// When bytes were under way, as far as a run can tell that sees its operations and not its bytes.
#pragma once
#include <vector>

#include "costmodel/timeline.hpp"

namespace fomoe::costmodel {

/// A node alone in a transfer waits; as soon as any other is in it too, bytes flow, until the node has done:
/// a span for each transfer and node of `intervals` that had company.
std::vector<FlowSpan> seen_flows(const std::vector<Interval>& intervals);

}  // namespace fomoe::costmodel
