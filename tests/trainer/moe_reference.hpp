// The sigma-MoE layer as plain loops over tokens and experts, in fp64, with a backward pass derived by hand.
// It is the reference for moe.cpp, and readable rather than fast.
#pragma once
#include <vector>

namespace fomoe::trainer {

/// All arrays are row-major.
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

/// Returns y [tokens, d].
std::vector<double> moe_reference_forward(const MoeReference& layer);
/// Returns the gradients of Σ d_y·y. d_y [tokens, d].
MoeGradients moe_reference_backward(const MoeReference& layer, const std::vector<double>& d_y);

}  // namespace fomoe::trainer
