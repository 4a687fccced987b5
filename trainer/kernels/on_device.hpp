// Translates properties of LibTorch tensors into what the kernels take.
#pragma once
#ifdef FOMOE_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#endif

#include "trainer/kernels/team.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

inline RowType row_type(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16,
              "the CUDA kernels support float and bf16, but not ", tensor.scalar_type());
  return tensor.scalar_type() == at::kFloat ? RowType::fp32 : RowType::bf16;
}

/// `launch(stream)` on the device's current stream; throws the launch error. Launches are generic lambdas: a
/// build without CUDA never instantiates them, and so needs no kernel that they name.
template <class Launch>
void launch_on(at::Device device, [[maybe_unused]] const Launch& launch) {
#ifdef FOMOE_CUDA
  const c10::cuda::CUDAGuard guard(device);
  C10_CUDA_CHECK(launch(at::cuda::getCurrentCUDAStream()));
#else
  TORCH_CHECK(false, "got a tensor on ", device, ", but this fomoe-train was built without CUDA");
#endif
}

/// The type in which values of `type` are summed.
inline at::ScalarType sum_type(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

}  // namespace fomoe::trainer
