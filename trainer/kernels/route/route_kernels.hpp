// The launch function that route.cu offers to route.cpp. It takes raw device pointers, so that nvcc never
// reads LibTorch's headers.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace fomoe::trainer {

/// The number of slots that one warp sorts.
inline constexpr std::int64_t kSlotsPerChunk = 512;

/// All pointers are to device memory. scratch: int32 [route_scratch_elements].
/// bins = local_experts + 1; the last bin holds the ghosts. Returns the first launch error.
cudaError_t launch_route(const std::int64_t* expert_of_slot, std::int64_t slots, int bins,
                         std::int64_t* permutation, std::int64_t* position, std::int32_t* ends,
                         std::int32_t* scratch, cudaStream_t stream);

/// int32 elements of scratch: a count for every (bin, chunk), and a total for every bin.
inline std::int64_t route_scratch_elements(std::int64_t slots, int bins) {
  return bins * ((slots + kSlotsPerChunk - 1) / kSlotsPerChunk) + bins;
}

}  // namespace fomoe::trainer
