// Counting sort of routed slots by local expert, with ghosts (experts that the site does not hold) last.
//
// Each token chooses k experts; slot t·k + j is the j-th choice of token t, and n is the number of slots.
// N_le is the number of local experts. Experts compute on consecutive rows, so the slots are sorted by
// expert. Shapes do not depend on the routing, and nothing is read back to the host. Instead, `ends` tells
// the grouped products, on the device, where the rows of each expert end. All positions after the last end
// belong to ghosts.
#pragma once
#include <cstdint>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct Route {
  at::Tensor permutation;  // int64 [n]: slot at each sorted position
  at::Tensor position;     // int64 [n]: sorted position of each slot, the inverse of `permutation`
  at::Tensor ends;         // int32 [N_le]: one past the last sorted position of each local expert
};

/// expert_of_slot: contiguous int64 [n], values 0 … local_experts, where local_experts means ghost. The sort
/// is stable, so that CPU and GPU give equal results and the rows of an expert are always summed in the same
/// order.
Route route(const at::Tensor& expert_of_slot, std::int64_t local_experts);

/// The reference implementation, for CPU tensors.
Route route_reference(const at::Tensor& expert_of_slot, std::int64_t local_experts);

}  // namespace fomoe::trainer
