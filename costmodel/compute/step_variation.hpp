// Steps that do not all take their mean.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// The mean over `repeat` steps of a site of what each takes ÷ the mean step. Every step is drawn by itself,
/// the same for the same (seed, node, round, op):
///   log-normal with mean 1: exp(σz − σ²/2), σ² = ln(1 + c²), c the coefficient of variation
///   × straggler_factor with probability straggler_share
/// or, with from_samples, a profile's samples ÷ their median, with replacement.
double drawn_step_factor(const Scenario& scenario, std::uint64_t node, std::uint64_t round, std::uint64_t op,
                         std::int64_t repeat);

/// The profile's point that the scenario uses, or any where that one is interpolated. Only of
/// ProfiledCompute.
const ProfilePoint& sampled_point(const Scenario& scenario);
/// Seconds of each timed step, its three parts together.
std::vector<double> step_totals_s(const ProfilePoint& point);

/// The expectation of the log-normal draw with stragglers: 1 + p(f − 1).
double expected_step_factor(const StepVariation& variation);

}  // namespace fomoe::costmodel
