// How busy each link was over time, as CSV.
#pragma once
#include <string>

#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "platforms/platform.hpp"

namespace fomoe::scenario {

/// Columns time_s (the middle of a bin), link, bytes_per_s, share (of the link's rate at the start; empty
/// where nothing limits it). Of the executed rounds of a timeline whose flows were recorded. `platform`: the
/// effective one.
std::string links_csv(const costmodel::Plan& plan, const platforms::Platform& platform,
                      const costmodel::Timeline& timeline);

}  // namespace fomoe::scenario
