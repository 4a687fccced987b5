// The answers of the closed form: for the present settings, and for other methods, K and bandwidths.
#pragma once
#include <string>
#include <vector>

#include "experiments/explore/question.hpp"

namespace fomoe::explore {

/// The report of the closed form, the bytes by class, and the curve over bandwidth, for the settings of one
/// move of the page: {report, sent, exact, rate_bytes_per_s, latency_s, curve: [[factor, utilisation,
/// seconds], …], command}.
Json formula_answer(const Question& question, const std::vector<std::string>& overrides);

/// The utilisations whose bandwidth the page lists.
inline constexpr double kTargets[] = {0.5, 0.8, 0.9, 0.95, 0.99};
/// The factor on all link rates with which the scenario reaches the utilisation, by the closed form. NaN if
/// no bandwidth reaches it, because latency or idle sites alone prevent it.
double needed_factor(const costmodel::Scenario& scenario, double utilization);

/// A few methods at the present settings, and every method with many K: {methods: [{name, label, curve,
/// needed: [factor or null for each of kTargets]}], points: [{method, label, local_steps, wall_clock_s, cost,
/// utilization, front}], left_out: [{method, why}]}. The points have a cost only if there are prices;
/// `front` then states whether the point is on the Pareto frontier of time and cost.
Json comparison_answer(const Question& question, const std::vector<std::string>& overrides);

/// GPUs of each site: one number, or "16/32/16".
Json gpus_of(const costmodel::Scenario& scenario);

}  // namespace fomoe::explore
