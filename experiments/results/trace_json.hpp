// A timeline for people: the Chrome trace format, which ui.perfetto.dev and chrome://tracing open.
#pragma once
#include <string>

#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "platforms/platform.hpp"

namespace fomoe::scenario {

/// One process for each site, in it one thread that computes, one that shows when bytes of the site are under
/// way, and one for each transfer of the plan: from wanting its first byte to its last one, waiting included.
/// Times in microseconds.
std::string trace_json(const costmodel::Plan& plan, const platforms::Platform& platform,
                       const costmodel::Timeline& timeline);

}  // namespace fomoe::scenario
