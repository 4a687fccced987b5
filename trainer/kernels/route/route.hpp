// Counting sort of routed slots by local expert, ghosts last.
//
// Token t's j-th choice is slot t·k + j. Experts compute on consecutive rows, so slots are put in the order
// of their expert. Shapes are static whatever the routing, and nothing is read back to the host: `ends` tells
// the grouped products, on the device, where each expert's rows end, and everything after the last end is
// ghosts.
#pragma once
#include <cstdint>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct Route {
  at::Tensor permutation;  // int64 [n]: slot at each sorted position
  at::Tensor position;     // int64 [n]: sorted position of each slot, the inverse of `permutation`
  at::Tensor ends;         // int32 [N_le]: one past the last sorted position of each local expert
};

/// expert_of_slot: contiguous int64 [n], values 0 … local_experts; local_experts means ghost. The sort is
/// stable, so CPU and GPU give equal results, and summing an expert's rows has one order.
Route route(const at::Tensor& expert_of_slot, std::int64_t local_experts);

/// The reference, for CPU tensors.
Route route_reference(const at::Tensor& expert_of_slot, std::int64_t local_experts);

}  // namespace fomoe::trainer
