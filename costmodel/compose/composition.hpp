// Techniques that change how all-reduces are executed. They apply to the plan of every method that has
// all-reduces.
//
// Technique 1, collective = hierarchical. The M sites of the scenario form R regions of n = M/R consecutive
// sites each. Three operations, each on a ring, replace one all-reduce. The first is a reduce-scatter inside
// each region. The second is an all-reduce of each chunk among the sites of equal rank in all regions. The
// third is an all-gather inside each region (Rabenseifner 2004; Jia et al. 2018, arXiv 1807.11205). For a
// payload of S bytes, every site sends 2(M−1)/M · S bytes, as in a single ring. Of these bytes, only
// 2(R−1)/R · S/n leave the site's region. The operations take 2(n−1) + 2(R−1) latencies; a single ring takes
// 2(M−1). A group of sites that the regions do not divide evenly keeps its single ring.
//
// Technique 2, secure aggregation. Every pair of sites agrees on a mask. One site of the pair adds the mask
// and the other subtracts it, so that only sums are readable (Bonawitz et al. 2017, "Practical Secure
// Aggregation"). Payloads are 32-bit integers. In every round, a site sends to each other site two public
// keys (2·32 B) and two encrypted shares of secrets (2·32 B). After the sum, the site sends one more share
// (32 B) to each other site; this share removes the masks of sites that dropped out. There is no server, so
// these messages go between all pairs. The time for arithmetic on masks is unknown and counts as 0.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// The plan of the scenario's method with these techniques applied. Executors run make_plan(), which adds the
/// extra traffic.
Plan composed_plan(const Scenario& scenario);

/// Throws InputError if the method's plan does not support the requested techniques.
void check_composition(const Scenario& scenario);

/// Wire format of masked payloads: 32-bit integers without sparsity.
WireFormat masked_format();

// The techniques of composed_plan() for one round.

/// A transformed round. `last[old]` is the operation that completes the former operation `old`.
struct Composed {
  RoundPlan round;
  std::vector<OpId> last;
};
Composed with_regions(const Scenario& scenario, const RoundPlan& plain);
Composed with_masks(const Scenario& scenario, const RoundPlan& plain);

}  // namespace fomoe::costmodel
