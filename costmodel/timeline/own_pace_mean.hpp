// The mean round of a run in which no worker waits for another one.
#pragma once
#include "costmodel/timeline/class_mean.hpp"

namespace fomoe::costmodel {

/// The rates at which workers train add up, whenever each of them ends its last cycle in the sample: with n_w
/// cycles of K_w steps in d_w seconds and B_w sequences of a step, the run of all sequences takes
///   T = Σ sequences ÷ Σ_w (n_w·K_w·B_w ÷ d_w)
/// If rounds are missing, the first quarter of a worker's cycles does not count. Shares of time and bytes of
/// a cycle are those of the same cycles.
ClassMean own_pace_mean(const Plan& plan, std::size_t sites, const RoundClass& round_class,
                        const Timeline& timeline);

}  // namespace fomoe::costmodel
