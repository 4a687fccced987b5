// The launch function that adam.cu offers to adam.cpp. It takes raw device pointers, so that nvcc never reads
// LibTorch's headers.
#pragma once
#include <cuda_runtime_api.h>

#include "trainer/kernels/adam/adam_row.hpp"

namespace fomoe::trainer {

/// `type` is the type of gradients and copies. `pieces` is read before the function returns. Returns the
/// first launch error.
cudaError_t launch_adam(RowType type, const AdamSettings& settings, const AdamPiece* pieces,
                        std::int64_t count, cudaStream_t stream);

}  // namespace fomoe::trainer
