// What C10_CUDA_CHECK is to emulated kernels, since LibTorch's own asks the driver, which is not there; and
// the check of what they read and write in one piece.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace emulated_gpu {

inline void check(cudaError_t error) {
  if (error != cudaSuccess)
    throw std::runtime_error("emulated GPU: refused, error " + std::to_string(static_cast<int>(error)));
}

/// Else the launch has failed with cudaErrorMisalignedAddress, as a GPU's would: a CPU reads it all the same.
void must_be_aligned(const void* address, std::size_t bytes);

}  // namespace emulated_gpu
