// The share of the experts and of the batch of each site.
#pragma once
#include <cstdint>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// O_e, the number of sites that hold each expert: expert_overlap, or the number of sites for methods that
/// keep full replicas.
int effective_overlap(const Scenario& scenario);

/// Copies of experts are dealt out to the sites in turn, and each layer continues where the one before ended.
/// A site therefore holds ⌊N_e·O_e/M⌋ or ⌈N_e·O_e/M⌉ of the N_e experts of each layer, and the numbers of
/// experts that sites hold in all layers differ by at most one. These are those of the first `dealt` copies
/// that a site has. The first site has most.
constexpr std::int64_t copies_at(std::int64_t dealt, int sites, int site) {
  return (dealt + sites - 1 - site) / sites;
}
/// The experts of one layer at a site. `layer` counts the layers with experts.
constexpr std::int64_t experts_at(std::int64_t experts, int overlap, int sites, int layer, int site) {
  const std::int64_t copies = experts * overlap;
  return copies_at((layer + 1) * copies, sites, site) - copies_at(layer * copies, sites, site);
}

/// Where the owners of an expert are drawn and a ring goes through them in the order of all sites: for
/// g = 1, …, sites − 1, the probability that the next owner is g sites further, C(M − 1 − g, O_e − 2) ÷
/// C(M − 1, O_e − 1). Needs 2 ≤ owners ≤ sites.
std::vector<double> next_owner_probabilities(int sites, int owners);

/// How the experts are dealt out to the sites.
struct ExpertShares {
  std::int64_t experts = 0, layers = 0;  // of each layer with experts, and number of these layers
  int overlap = 1, sites = 1;            // O_e; M for methods that keep full replicas

  /// Experts of a layer at a site: ⌊N_e·O_e/M⌋ to ⌈N_e·O_e/M⌉.
  [[nodiscard]] std::int64_t fewest_of_layer() const { return experts * overlap / sites; }
  [[nodiscard]] std::int64_t most_of_layer() const { return (experts * overlap + sites - 1) / sites; }
  /// Experts of all layers at a site.
  [[nodiscard]] std::int64_t at(int site) const { return copies_at(layers * experts * overlap, sites, site); }
  /// Whether some sites hold one expert more than others do, all layers together.
  [[nodiscard]] bool differ() const { return layers * experts * overlap % sites != 0; }
  /// N_le, the experts of a layer at a site, mean over the layers: O_e·N_e/M unless sites differ.
  [[nodiscard]] double of_layer(int site) const;
  /// Share of the experts of all layers that a site holds: O_e/M unless sites differ.
  [[nodiscard]] double held(int site) const;
};
ExpertShares expert_shares(const Scenario& scenario);

/// ExpertShares::held() of the first site, which holds most. `experts` are those of a layer.
double most_held_share(double sites, double overlap, double moe_layers, double experts);

/// Sequences of a batch before the part of the batch that begins at `share` of it. Parts between two such
/// places differ from their exact size by less than one sequence, and add up to the batch.
inline double sequences_before(double batch_sequences, double share) {
  return std::floor(batch_sequences * (share * (1 + 1e-14)));
}

/// Where the part of each site begins and ends in a batch with Workload::batch_shares, as shares of the
/// batch.
std::vector<double> share_limits(const Workload& workload);

/// Sequences of the global batch that a site processes in one step. Without batch_shares, sites differ by at
/// most one sequence, unless the method trains at the first site alone.
std::int64_t local_batch_sequences(const Scenario& scenario, int site);

/// Sequences whose passes through all layers are the work of a site's step: those of its part of the batch. A
/// stage of a pipeline has a part of the layers and computes it for every sequence of its pipeline. That is
/// as much work as B_g/M sequences in all layers, which need not be whole.
double sequences_of_work(const Scenario& scenario, int site);
/// Work for an equal part of the batch, B_g/M sequences, ÷ that for `sequences`, the site's own part. Sites
/// that compute each other's tokens have equal parts of those, however the batch is dealt out. A given step
/// time holds for any part.
inline double equal_part(const ComputeSpec& compute, double mean_sequences, double sequences) {
  return std::holds_alternative<GivenStepTime>(compute) || sequences == 0 ? 1 : mean_sequences / sequences;
}

/// Optimiser steps of the run: ⌈tokens ÷ global batch⌉.
std::int64_t optimizer_steps(const Scenario& scenario);

}  // namespace fomoe::costmodel
