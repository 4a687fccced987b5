// Helpers of the trainer's tests. LibTorch defines a CHECK macro of its own, so doctest is included after it.
#pragma once
#include "trainer/torch.hpp"

#undef CHECK
#undef CHECK_EQ
#undef CHECK_NE
#undef CHECK_LE
#undef CHECK_LT
#undef CHECK_GE
#undef CHECK_GT
#include <doctest/doctest.h>

#include "costmodel/inputs/model_shape.hpp"
#include "trainer/model/model.hpp"

namespace fomoe::trainer::testing {

/// Small enough for fp64 and finite differences.
inline costmodel::ModelShape tiny_shape() {
  costmodel::ModelShape shape;
  shape.name = "tiny";
  shape.d_model = 8;
  shape.layers = 2;
  shape.heads = 2;
  shape.experts = 4;
  shape.active_experts = 2;
  shape.d_expert = 3;
  shape.vocabulary = 17;
  shape.sequence_length = 6;
  return shape;
}

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

/// While the object exists, at::empty returns tensors full of NaN, so that reading uninitialised memory
/// shows.
class PoisonedMemory {
 public:
  PoisonedMemory() { at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true); }
  ~PoisonedMemory() { at::globalContext().setDeterministicAlgorithms(false, false); }
  PoisonedMemory(const PoisonedMemory&) = delete;
  PoisonedMemory& operator=(const PoisonedMemory&) = delete;
};

}  // namespace fomoe::trainer::testing
