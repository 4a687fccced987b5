// The launch function that softmax_loss.cu offers to softmax_loss.cpp. It takes raw device pointers, so that
// nvcc never reads LibTorch's headers.
#pragma once
#include <cuda_runtime_api.h>

#include "trainer/kernels/softmax_loss/softmax_loss_row.hpp"

namespace fomoe::trainer {

/// Returns the launch error.
cudaError_t launch_softmax_loss(RowType type, const SoftmaxLoss& arguments, cudaStream_t stream);

}  // namespace fomoe::trainer
