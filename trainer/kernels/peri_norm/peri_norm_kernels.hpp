// The launch functions that peri_norm.cu offers to peri_norm.cpp. They take raw device pointers, so that nvcc
// never reads LibTorch's headers.
#pragma once
#include <cuda_runtime_api.h>

#include "trainer/kernels/peri_norm/peri_norm_row.hpp"

namespace fomoe::trainer {

// Each returns the launch error, which is cudaErrorInvalidValue if a row is too long for the shared memory of
// a multiprocessor.
cudaError_t launch_peri_norm(RowType type, const PeriNorm& arguments, cudaStream_t stream);
cudaError_t launch_peri_norm_backward(RowType type, const PeriNormBackward& arguments, cudaStream_t stream);

}  // namespace fomoe::trainer
