// The share of the experts and of the batch of each site.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// O_e, the number of sites that hold each expert: expert_overlap, or the number of sites for methods that
/// keep full replicas.
int effective_overlap(const Scenario& scenario);

/// N_le = O_e·N_e/M, the experts of each layer at a site, where N_e is the number of experts per layer and M
/// the number of sites. check() has rejected values that do not divide evenly.
std::int64_t local_experts(const Scenario& scenario);

/// Sequences of a batch before the part of the batch that begins at `share` of it. Parts between two such
/// places differ from their exact size by less than one sequence, and add up to the batch.
inline double sequences_before(double batch_sequences, double share) {
  return std::floor(batch_sequences * (share * (1 + 1e-14)));
}

/// Where the part of each site begins and ends in a batch with Workload::batch_shares, as shares of the
/// batch.
std::vector<double> share_limits(const Scenario& scenario);

/// Sequences of the global batch that a site processes in one step. Without batch_shares, sites differ by at
/// most one sequence, unless the method trains at the first site alone.
std::int64_t local_batch_sequences(const Scenario& scenario, int site);

/// Optimiser steps of the run: ⌈tokens ÷ global batch⌉.
std::int64_t optimizer_steps(const Scenario& scenario);

}  // namespace fomoe::costmodel
