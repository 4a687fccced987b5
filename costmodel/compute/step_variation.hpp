// Random variation of step times.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// Mean over `repeat` steps of a site of step time ÷ mean step time. Every step is drawn independently; the
/// draw depends only on (seed, node, round, op):
///   log-normal with mean 1: exp(σz − σ²/2), σ² = ln(1 + c²), c the coefficient of variation
///   × straggler_factor with probability straggler_share
/// With from_samples, the factor is a profile's sample ÷ the median sample, drawn with replacement.
double drawn_step_factor(const Scenario& scenario, std::uint64_t node, std::uint64_t round, std::uint64_t op,
                         std::int64_t repeat);

/// The profile's point that the scenario uses, or any point if the scenario's step is interpolated. Requires
/// ProfiledCompute.
const ProfilePoint& sampled_point(const Scenario& scenario);
/// Seconds of each timed step, the sum of its three parts.
std::vector<double> step_totals_s(const ProfilePoint& point);

/// Expectation of the log-normal factor with stragglers: 1 + p(f − 1), p the straggler share and f the
/// straggler factor.
double expected_step_factor(const StepVariation& variation);

}  // namespace fomoe::costmodel
