// Replaces C10_CUDA_CHECK for emulated kernels, since LibTorch's macro asks the driver, which need not exist.
// Also checks the alignment of packs.
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

/// If the address is not aligned, the launch fails with cudaErrorMisalignedAddress, as on a GPU. The CPU
/// itself would read it.
void must_be_aligned(const void* address, std::size_t bytes);

}  // namespace emulated_gpu
