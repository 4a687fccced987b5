// The launch functions that rotary.cu offers to rotary.cpp. They take raw device pointers, so that nvcc never
// reads LibTorch's headers.
#pragma once
#include <cuda_runtime_api.h>

#include "trainer/kernels/rotary/rotary_row.hpp"

namespace fomoe::trainer {

// Each returns the launch error.
cudaError_t launch_rotary(RowType type, const Rotary& arguments, cudaStream_t stream);
cudaError_t launch_rotary_backward(RowType type, const Rotary& arguments, cudaStream_t stream);

}  // namespace fomoe::trainer
