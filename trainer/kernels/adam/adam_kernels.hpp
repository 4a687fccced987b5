// The launch function that adam.cu offers to adam.cpp. It takes raw device pointers, so that nvcc never reads
// LibTorch's headers.
#pragma once
#include <cuda_runtime_api.h>

#include "trainer/kernels/adam/adam_row.hpp"

namespace fomoe::trainer {

/// The type of gradients. Masters of fp64 gradients are fp64, all others are fp32.
enum class AdamType { fp64, fp32, bf16 };

/// `pieces` is read before the function returns. Returns the first launch error.
cudaError_t launch_adam(AdamType type, const AdamSettings& settings, const AdamPiece* pieces,
                        std::int64_t count, cudaStream_t stream);

}  // namespace fomoe::trainer
