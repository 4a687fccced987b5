// The sigma-MoE layer as plain loops over tokens and experts, in fp64, with a backward derived by hand. Slow
// and readable on purpose: moe.cpp is tested against it.
#pragma once
#include <vector>

namespace fomoe::trainer {

/// Row-major arrays.
struct MoeReference {
  int tokens = 0, d = 0, d_expert = 0, scored = 0, local = 0, chosen = 0;
  std::vector<double> x;         // [tokens, d]
  std::vector<double> router;    // [d, scored]
  std::vector<double> up;        // [local, d, d_expert]
  std::vector<double> down;      // [local, d_expert, d]
  std::vector<int> local_index;  // [scored]: row of `up`, or −1 for a ghost
};

struct MoeGradients {
  std::vector<double> x, router, up, down;  // as in MoeReference
};

/// y [tokens, d]
std::vector<double> moe_reference_forward(const MoeReference& layer);
/// Gradients of Σ d_y·y. d_y [tokens, d]
MoeGradients moe_reference_backward(const MoeReference& layer, const std::vector<double>& d_y);

}  // namespace fomoe::trainer
