// The parts of a result that the report draws, written as JSON so that they need not be computed again.
#pragma once
#include <string>
#include <vector>

#include "costmodel/formula/bandwidth_curve.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "costmodel/timeline/round_timeline.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::scenario {

/// Mean bytes that a site sends per round, by class of traffic.
Json to_json(const costmodel::SentBytes& sent);

/// The curve over bandwidth, and the engine that computed it: "closed-form" or "simulated".
Json to_json(const std::vector<costmodel::BandwidthPoint>& curve, const std::string& executor);

/// The nodes by their sites' names: "paris", "server at paris".
Json to_json(const costmodel::RoundTimeline& timeline, const costmodel::Plan& plan,
             const platforms::Platform& platform);

}  // namespace fomoe::scenario
