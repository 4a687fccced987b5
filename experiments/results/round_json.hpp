// What a result carries so that it can be drawn without being computed again.
#pragma once
#include <string>
#include <vector>

#include "costmodel/formula/bandwidth_curve.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "costmodel/timeline/round_timeline.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::scenario {

/// Bytes that a site sends in the mean round, by class.
Json to_json(const costmodel::SentBytes<double>& sent);

/// By the closed form.
Json to_json(const std::vector<costmodel::BandwidthPoint>& curve);

/// Nodes by their sites' names: "paris", "server at paris".
Json to_json(const costmodel::RoundTimeline& timeline, const costmodel::Plan& plan,
             const platforms::Platform& platform);

}  // namespace fomoe::scenario
