// Writes a timeline in the Chrome trace format, which ui.perfetto.dev and chrome://tracing open.
#pragma once
#include <string>

#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "platforms/platform.hpp"

namespace fomoe::scenario {

/// Each site is one process. It has one thread for compute, one for the times when the site's bytes are in
/// flight, and one for each transfer of the plan. A transfer lasts from the request for its first byte to its
/// last byte, including waiting. Times are in microseconds.
std::string trace_json(const costmodel::Plan& plan, const platforms::Platform& platform,
                       const costmodel::Timeline& timeline);

}  // namespace fomoe::scenario
