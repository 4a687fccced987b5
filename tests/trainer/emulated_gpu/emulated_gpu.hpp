// Enough of CUDA C++ to run trainer/kernels/*.cu on a CPU, thread by thread: each thread of a block is a
// fiber that runs until it waits for its warp or its block. The emulation shows what a kernel computes,
// misaligned packs (vector loads and stores, see trainer/kernels/team.hpp), and launches with more threads or
// dynamic shared memory than a GPU has. It does not show speed, races between threads that a GPU runs at the
// same time, reads of earlier contents of __shared__ variables, register use, or threads that wait at
// different places for barriers of one kind.
//
// emulate.py translates trainer/kernels into C++ in namespace fomoe::emulated: a launch becomes a call of
// emulated_gpu::launch, and dynamic shared memory becomes a pointer.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>

// Blocks run one after the other, so static variables serve as the shared memory of each block in turn.
#undef __shared__
#define __shared__ static
#define __launch_bounds__(threads)

namespace emulated_gpu {

struct Index {
  unsigned x = 0;
};

/// The indices of the running thread.
extern Index thread_index, block_index, block_size;

/// Limits of compute capability 9.0 in bytes (CUDA C++ programming guide, table of technical specifications).
inline constexpr std::size_t kMostShared = 227 * 1024, kSharedUnasked = 48 * 1024;
/// Bytes reserved for the variables that kernels declare __shared__, which count towards the limit.
inline constexpr std::size_t kOwnShared = 1024;

/// The dynamic shared memory: kMostShared bytes, aligned to 16 bytes.
void* shared_memory();

/// Runs the kernel to its end. last_error() then reports a refused launch. Throws std::logic_error if threads
/// wait for each other at different places for ever.
void launch(const void* kernel, std::int64_t blocks, std::int64_t threads, std::size_t shared_bytes,
            const std::function<void()>& body);
cudaError_t last_error();
cudaError_t ask_for_shared(const void* kernel, int bytes);

void wait_for_block();
void wait_for_warp();
/// A buffer of the running thread's warp: 16 bytes for each of the 32 lanes.
void* warp_places();

template <class T>
T from_lane(T value, int lane) {
  static_assert(sizeof(T) <= 16);
  auto* places = static_cast<char*>(warp_places());
  std::memcpy(places + 16 * (thread_index.x % 32), &value, sizeof(T));
  wait_for_warp();
  std::memcpy(&value, places + 16 * lane, sizeof(T));
  wait_for_warp();
  return value;
}

}  // namespace emulated_gpu

// The names that kernels use.
#define threadIdx emulated_gpu::thread_index
#define blockIdx emulated_gpu::block_index
#define blockDim emulated_gpu::block_size
#define cudaGetLastError emulated_gpu::last_error
#define cudaFuncSetAttribute(kernel, attribute, bytes) emulated_gpu::ask_for_shared(kernel, bytes)
#define cudaMemsetAsync(to, value, bytes, stream) (std::memset(to, value, bytes), (void)(stream), cudaSuccess)

using std::min;
inline void __syncthreads() { emulated_gpu::wait_for_block(); }
inline void __syncwarp() { emulated_gpu::wait_for_warp(); }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline std::int32_t atomicAdd(std::int32_t* to, std::int32_t value) {
  const std::int32_t before = *to;
  *to += value;
  return before;
}
// All lanes take part, so the mask is ignored.
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return emulated_gpu::from_lane(value, lane);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int step) {
  return emulated_gpu::from_lane(value, static_cast<int>(threadIdx.x % 32) ^ step);
}
// Lanes without such a neighbour keep their own value.
template <class T>
T __shfl_up_sync(unsigned, T value, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  return emulated_gpu::from_lane(value, lane >= step ? lane - step : lane);
}
inline unsigned __match_any_sync(unsigned, int value) {
  auto* places = static_cast<int*>(emulated_gpu::warp_places());
  places[threadIdx.x % 32] = value;
  __syncwarp();
  unsigned same = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if (places[lane] == value) same |= 1u << lane;
  }
  __syncwarp();
  return same;
}
