// Teams of GPU threads, with the interface that team.hpp describes.
#pragma once
#include <initializer_list>

#include "trainer/kernels/team.hpp"

namespace fomoe::trainer {

template <class S>
__device__ S warp_sum(S value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}
template <class S>
__device__ S warp_largest(S value) {
  for (int step = 16; step > 0; step /= 2) {
    const S other = __shfl_xor_sync(0xffffffffu, value, step);
    value = value < other ? other : value;
  }
  return value;
}

struct WarpTeam {
  [[nodiscard]] __device__ int rank() const { return static_cast<int>(threadIdx.x % 32); }
  [[nodiscard]] __device__ int size() const { return 32; }
  __device__ void wait() const { __syncwarp(); }
  template <class S>
  [[nodiscard]] __device__ S sum(S value) const {
    return warp_sum(value);
  }
  template <class S>
  [[nodiscard]] __device__ S largest(S value) const {
    return warp_largest(value);
  }
};

/// All kThreads threads of a block; kThreads is a multiple of 32 and at most 1024.
template <int kThreads>
struct BlockTeam {
  [[nodiscard]] __device__ int rank() const { return static_cast<int>(threadIdx.x); }
  [[nodiscard]] __device__ int size() const { return kThreads; }
  __device__ void wait() const { __syncthreads(); }
  template <class S>
  [[nodiscard]] __device__ S sum(S value) const {
    __shared__ S of_warp[kThreads / 32];
    value = warp_sum(value);
    __syncthreads();  // another sum may still be reading of_warp
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    S total = 0;
    for (const S& part : of_warp) total += part;
    return total;
  }
  template <class S>
  [[nodiscard]] __device__ S largest(S value) const {
    __shared__ S of_warp[kThreads / 32];
    value = warp_largest(value);
    __syncthreads();  // another call may still be reading of_warp
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    for (const S& other : of_warp) value = value < other ? other : value;
    return value;
  }
  template <class S>
  [[nodiscard]] __device__ Before<S> before(S value) const {
    __shared__ S of_warp[kThreads / 32];
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    S through = value;  // the sum over this lane and all lower lanes
    for (int step = 1; step < 32; step *= 2) {
      const S lower = __shfl_up_sync(0xffffffffu, through, step);
      if (lane >= step) through += lower;
    }
    __syncthreads();  // another sum may still be reading of_warp
    if (lane == 31) of_warp[warp] = through;
    __syncthreads();
    Before<S> out{through - value, 0};
    for (int w = 0; w < kThreads / 32; ++w) {
      if (w < warp) out.sum += of_warp[w];
      out.all += of_warp[w];
    }
    return out;
  }
};

/// Whether rows of `elements` elements in these matrices can be read 16 bytes at a time.
template <class T>
bool in_packs(std::int64_t elements, std::initializer_list<const void*> matrices) {
  bool aligned = elements * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
  for (const void* matrix : matrices) aligned = aligned && reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0;
  return aligned;
}

}  // namespace fomoe::trainer
