// What outer_step.cu offers to outer_step.cpp: raw device pointers, so that nvcc never reads LibTorch's
// headers.
#pragma once
#include <cuda_runtime_api.h>

#include "trainer/kernels/outer_step/outer_step_row.hpp"

namespace fomoe::trainer {

/// n ≥ 1. Returns the launch error.
cudaError_t launch_nesterov(const NesterovStep<float>& step, cudaStream_t stream);

}  // namespace fomoe::trainer
