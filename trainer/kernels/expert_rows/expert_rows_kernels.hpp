// The launch functions that expert_rows.cu offers to expert_rows.cpp. They take raw device pointers, so that
// nvcc never reads LibTorch's headers.
#pragma once
#include <cuda_runtime_api.h>

#include "trainer/kernels/expert_rows/expert_rows_row.hpp"

namespace fomoe::trainer {

// All tensors are contiguous and of `type`. Each function returns the launch error.
cudaError_t launch_rows_of_experts(RowType type, const void* x, const RowRoute& route, std::int64_t d,
                                   void* rows, cudaStream_t stream);
/// If gates is nullptr, all gates are 1.
cudaError_t launch_weighted_sum(RowType type, const void* y, const void* gates, const RowRoute& route,
                                std::int64_t d, void* out, cudaStream_t stream);
/// out = SiLU(h).
cudaError_t launch_silu(RowType type, const void* h, const std::int32_t* ends, int experts, std::int64_t rows,
                        std::int64_t width, void* out, cudaStream_t stream);
cudaError_t launch_gated_silu_backward(RowType type, const GatedSilu& arguments, const RowRoute& route,
                                       cudaStream_t stream);

}  // namespace fomoe::trainer
