// Random variation of step times.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// Returns step time ÷ mean step time, as the mean over `repeat` steps of a site. Every step is drawn
/// independently. The draw depends only on (seed, node, round, op). The factor of one step is a product of
/// two factors:
///   - exp(σz − σ²/2), a log-normal factor with mean 1: z is a standard normal draw, σ² = ln(1 + c²), and
///     c is the coefficient of variation
///   - straggler_factor with probability straggler_share, otherwise 1. The decision is made for each step,
///     round or run (straggler_lasts); with probability stragglers_together, it is the one of all sites.
/// With from_samples, the first factor is instead one of the profile's samples ÷ the median sample, drawn
/// with replacement.
double drawn_step_factor(const Scenario& scenario, std::uint64_t node, std::uint64_t round, std::uint64_t op,
                         std::int64_t repeat);

/// The profile's point that the scenario uses, or any point if the scenario's step is interpolated. Requires
/// ProfiledCompute.
const ProfilePoint& sampled_point(const Scenario& scenario);
/// Seconds of each timed step, the sum of its three parts.
std::vector<double> step_totals_s(const ProfilePoint& point);

/// Expected value of the log-normal factor with stragglers: 1 + p(f − 1), where p is straggler_share and f is
/// straggler_factor.
double expected_step_factor(const StepVariation& variation);

}  // namespace fomoe::costmodel
