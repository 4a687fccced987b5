// The share of the experts and of the batch of each site.
#pragma once
#include <cstdint>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// O_e, the number of sites that hold each expert: expert_overlap, or the number of sites for methods that
/// keep full replicas.
int effective_overlap(const Scenario& scenario);

/// N_le = O_e·N_e/M, the experts of each layer at a site, where N_e is the number of experts per layer and M
/// the number of sites. check() has rejected values that do not divide evenly.
std::int64_t local_experts(const Scenario& scenario);

/// Sequences of the global batch that a site processes in one step. Sites differ by at most one sequence,
/// unless the method trains at the first site alone.
std::int64_t local_batch_sequences(const Scenario& scenario, int site);

/// Optimiser steps of the run: ⌈tokens ÷ global batch⌉.
std::int64_t optimizer_steps(const Scenario& scenario);

}  // namespace fomoe::costmodel
