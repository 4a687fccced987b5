// Affinity placement: experts are placed at the sites whose tokens choose them most.
#pragma once
#include <cstdint>

#include "costmodel/inputs/routing_counts.hpp"
#include "costmodel/plan/placement.hpp"

namespace fomoe::costmodel {

/// Minimises, over placements with O_e owners per expert and N_le experts per worker in every layer,
///   Σ_{ℓ,e,w} count(ℓ,e,w)·[w does not hold e]  +  migration_cost · #(experts that a worker must fetch)
/// The first term counts the routed tokens whose expert is not at their site. The second counts the experts
/// that `previous` does not have at a worker, at `migration_cost` tokens each; it is 0 without `previous`.
/// Layers are independent. Each layer is a transportation problem, solved exactly by successive shortest
/// paths over the M workers in O(N_e·O_e·M²·N_le) steps. Ties go to lower ids.
Placement affinity_placement(const RoutingCounts& counts, int overlap, const Placement* previous = nullptr,
                             std::int64_t migration_cost = 0);

/// Share of all routed tokens whose expert is not at their site; 0 if no tokens were routed.
double skipped_share(const RoutingCounts& counts, const Placement& placement);

}  // namespace fomoe::costmodel
