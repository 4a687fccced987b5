// Writes the utilisation of each link over time as CSV.
#pragma once
#include <string>

#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "platforms/platform.hpp"

namespace fomoe::scenario {

/// Columns time_s (middle of a bin), link, bytes_per_s, share (of the link's rate at the start; empty for an
/// unlimited link). Covers the executed rounds of a timeline with recorded flows. `platform` is the effective
/// platform.
std::string links_csv(const costmodel::Plan& plan, const platforms::Platform& platform,
                      const costmodel::Timeline& timeline);

}  // namespace fomoe::scenario
