// Which rounds of a class are executed, before it is known how much they differ.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "sim/executor/simulated_run.hpp"

namespace fomoe::sim {

/// How many rounds of the class are executed at first.
std::int64_t usual_rounds(const costmodel::RoundClass& round_class, const RunOptions& options);

/// The indices of the rounds that are executed if `wanted` rounds of the class shall be.
std::vector<std::int64_t> first_rounds(const costmodel::RoundClass& round_class, std::int64_t wanted);

/// Throws if the user asked for rounds that a plan from a file does not describe.
void check_known(const costmodel::RoundClass& round_class, const RunOptions& options);

/// Whether the half-width of the 95 % confidence interval of the mean round, without the first one, is at
/// most this share of the mean.
bool agree(const costmodel::Timeline& timeline, double precision);

}  // namespace fomoe::sim
