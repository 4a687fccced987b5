// What C10_CUDA_CHECK is to emulated kernels: LibTorch's own asks the driver, which is not there.
#pragma once
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace emulated_gpu {

inline void check(cudaError_t error) {
  if (error != cudaSuccess)
    throw std::runtime_error("emulated GPU: refused, error " + std::to_string(static_cast<int>(error)));
}

}  // namespace emulated_gpu
