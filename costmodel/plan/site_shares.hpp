// The share of the experts and of the batch that each site has.
#pragma once
#include <cstdint>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// O_e as it takes effect: the number of sites for methods that keep full replicas.
int effective_overlap(const Scenario& scenario);

/// N_le = O_e·N_e/M; check() has refused what does not divide.
std::int64_t local_experts(const Scenario& scenario);

/// Sequences of the global batch that a site processes in one step; sites differ by at most one, save where
/// the method trains at the first site alone.
std::int64_t local_batch_sequences(const Scenario& scenario, int site);

/// ⌈tokens ÷ global batch⌉.
std::int64_t optimizer_steps(const Scenario& scenario);

}  // namespace fomoe::costmodel
