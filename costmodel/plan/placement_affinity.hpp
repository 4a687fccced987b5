// Affinity placement: experts are placed at the sites whose tokens choose them most.
#pragma once
#include <cstdint>

#include "costmodel/inputs/routing_counts.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/placement.hpp"

namespace fomoe::costmodel {

/// Finds the placement with O_e owners per expert and N_le experts per worker in every layer that minimises
///   Σ_{ℓ,e,w} count(ℓ,e,w)·[w does not hold e]  +  migration_cost · #(experts that a worker must fetch)
/// over layers ℓ, experts e and workers w; count(ℓ,e,w) is the number of tokens of w that chose e. The first
/// term is the number of routed tokens whose expert is not at their site. The second term is the number of
/// experts that `previous` does not have at a worker, at `migration_cost` tokens each. It is 0 without
/// `previous`.
/// Layers are independent. Each layer is a transportation problem, solved exactly by successive shortest
/// paths over the M workers in O(N_e·O_e·M²·N_le) steps. Ties go to lower ids.
Placement affinity_placement(const RoutingCounts& counts, int overlap, const Placement* previous = nullptr,
                             std::int64_t migration_cost = 0);

/// The placement of a strategy whose experts stay: fixed, rotated, or by affinity.
Placement staying_placement(const Strategy& strategy, int layers, int experts, int sites, int overlap);

/// Share of all routed tokens whose expert is not at their site; 0 if no tokens were routed.
double skipped_share(const RoutingCounts& counts, const Placement& placement);

}  // namespace fomoe::costmodel
