// How all-reduces are carried out, whatever the method: what composes with every plan that has some.
//
// collective = hierarchical. Sites are in R regions of n = M/R consecutive ones. Three operations in place of
// one, each on a ring: a reduce-scatter inside each region, an all-reduce of each chunk among the sites of
// the same rank in all regions, an all-gather inside each region (Rabenseifner 2004; Jia et al. 2018, arXiv
// 1807.11205). Every site sends 2(M−1)/M·S as in one ring, of which only 2(R−1)/R · S/n leaves its region, in
// 2(n−1) + 2(R−1) latencies instead of 2(M−1). Groups of sites that regions do not cut evenly keep their
// ring.
//
// secure_aggregation. Every pair of sites agrees on a mask that one adds and the other subtracts, so that
// only sums can be read (Bonawitz et al. 2017, "Practical Secure Aggregation"). Payloads are 32-bit integers.
// In every round, to each other site: two public keys, 2·32 B; two encrypted shares of secrets, 2·32 B; and
// after the sum one share, 32 B, that removes the masks of sites that dropped out. Without a server these go
// between all pairs. Arithmetic on masks takes time that nobody gave: 0.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// The plan of the scenario's method, composed. Executors run it with the traffic beside it: make_plan().
Plan composed_plan(const Scenario& scenario);

/// Refuses what the method's plan cannot be composed with: throws InputError.
void check_composition(const Scenario& scenario);

/// Payloads that are masked: 32-bit integers, nothing left out.
WireFormat masked_format();

// The steps of composed_plan, on one round.

/// `last[old]`: the operation that ends what was operation `old`.
struct Composed {
  RoundPlan round;
  std::vector<OpId> last;
};
Composed with_regions(const Scenario& scenario, const RoundPlan& plain);
Composed with_masks(const Scenario& scenario, const RoundPlan& plain);

}  // namespace fomoe::costmodel
