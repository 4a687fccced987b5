// The launch function that outer_step.cu offers to outer_step.cpp. It takes raw device pointers, so that nvcc
// never reads LibTorch's headers.
#pragma once
#include <cuda_runtime_api.h>

#include "trainer/kernels/outer_step/outer_step_row.hpp"

namespace fomoe::trainer {

/// The step must have n ≥ 1 elements. Returns the launch error.
cudaError_t launch_nesterov(const NesterovStep<float>& step, cudaStream_t stream);

}  // namespace fomoe::trainer
