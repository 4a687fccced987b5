// Translates properties of LibTorch tensors into what the kernels take.
#pragma once
#include "trainer/kernels/team.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

inline RowType row_type(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16,
              "our own kernels on CUDA: float or bf16, not ", tensor.scalar_type());
  return tensor.scalar_type() == at::kFloat ? RowType::fp32 : RowType::bf16;
}

/// The type in which values of `type` are summed.
inline at::ScalarType sum_type(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

}  // namespace fomoe::trainer
