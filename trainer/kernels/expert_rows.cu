// See expert_rows.hpp for what, expert_rows.cpp for the same in plain loops. Not run on a GPU yet.
//
// One block for each row or token, its threads along d, so that neighbouring threads read neighbouring
// elements. Blocks of ghosts' rows return at once. The number of rows that are here is read on the device:
// nothing waits for the host.
#include <cuda_bf16.h>

#include "trainer/kernels/expert_rows_kernels.hpp"

namespace fomoe::trainer {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

__device__ float to_float(float value) { return value; }
__device__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
template <class T>
__device__ T from_float(float value);
template <>
__device__ float from_float<float>(float value) {
  return value;
}
template <>
__device__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16(value);
}

__device__ float sigmoid(float z) { return 1.0f / (1.0f + __expf(-z)); }

// The sum over a block, in every thread of warp 0.
__device__ float block_sum(float value) {
  __shared__ float of_warp[kWarps];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  __syncthreads();  // of_warp may be in use from the sum before
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = lane < kWarps ? of_warp[lane] : 0.0f;
  for (int step = kWarps / 2; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  return value;
}

template <class T>
__global__ void gather_rows(const T* x, DeviceRoute route, std::int64_t d, T* rows) {
  const std::int64_t row = blockIdx.x;
  if (row >= route.ends[route.experts - 1]) return;
  const T* from = x + route.permutation[row] / route.chosen * d;
  for (std::int64_t i = threadIdx.x; i < d; i += kThreads) rows[row * d + i] = from[i];
}

template <class T>
__global__ void sum_rows(const T* y, const T* gates, DeviceRoute route, std::int64_t d, T* out) {
  const std::int64_t token = blockIdx.x;
  const std::int64_t here = route.ends[route.experts - 1];
  for (std::int64_t i = threadIdx.x; i < d; i += kThreads) {
    float sum = 0;
    for (int j = 0; j < route.chosen; ++j) {
      const std::int64_t slot = token * route.chosen + j, row = route.position[slot];
      if (row >= here) continue;
      const float gate = gates == nullptr ? 1.0f : to_float(gates[slot]);
      sum += gate * to_float(y[row * d + i]);
    }
    out[token * d + i] = from_float<T>(sum);
  }
}

template <class T>
__global__ void sum_rows_backward(const T* d_out, const T* y, const T* gates, DeviceRoute route,
                                  std::int64_t d, T* d_y, T* d_gates) {
  const std::int64_t slot = blockIdx.x, token = slot / route.chosen, row = route.position[slot];
  if (row >= route.ends[route.experts - 1]) {
    if (threadIdx.x == 0) d_gates[slot] = from_float<T>(0.0f);
    return;
  }
  const float gate = to_float(gates[slot]);
  float product = 0;
  for (std::int64_t i = threadIdx.x; i < d; i += kThreads) {
    const float d_o = to_float(d_out[token * d + i]);
    product += to_float(y[row * d + i]) * d_o;
    d_y[row * d + i] = from_float<T>(gate * d_o);
  }
  product = block_sum(product);
  if (threadIdx.x == 0) d_gates[slot] = from_float<T>(product);
}

template <class T>
__global__ void silu_rows(const T* d_a, const T* h, const std::int32_t* ends, int experts, std::int64_t width,
                          T* out) {
  const std::int64_t row = blockIdx.x;
  if (row >= ends[experts - 1]) return;
  for (std::int64_t i = row * width + threadIdx.x; i < (row + 1) * width; i += kThreads) {
    const float z = to_float(h[i]), s = sigmoid(z);
    out[i] = from_float<T>(d_a == nullptr ? z * s : to_float(d_a[i]) * s * (1.0f + z * (1.0f - s)));
  }
}

template <class T>
const T* as(const void* data) {
  return static_cast<const T*>(data);
}
template <class T>
T* as(void* data) {
  return static_cast<T*>(data);
}

unsigned blocks(std::int64_t count) { return static_cast<unsigned>(count); }  // up to 2^31 − 1

template <class T>
cudaError_t gather(const void* x, const DeviceRoute& route, std::int64_t d, void* rows, cudaStream_t stream) {
  gather_rows<T>
      <<<blocks(route.tokens * route.chosen), kThreads, 0, stream>>>(as<T>(x), route, d, as<T>(rows));
  return cudaGetLastError();
}
template <class T>
cudaError_t sum(const void* y, const void* gates, const DeviceRoute& route, std::int64_t d, void* out,
                cudaStream_t stream) {
  sum_rows<T><<<blocks(route.tokens), kThreads, 0, stream>>>(as<T>(y), as<T>(gates), route, d, as<T>(out));
  return cudaGetLastError();
}
template <class T>
cudaError_t sum_backward(const void* d_out, const void* y, const void* gates, const DeviceRoute& route,
                         std::int64_t d, void* d_y, void* d_gates, cudaStream_t stream) {
  sum_rows_backward<T><<<blocks(route.tokens * route.chosen), kThreads, 0, stream>>>(
      as<T>(d_out), as<T>(y), as<T>(gates), route, d, as<T>(d_y), as<T>(d_gates));
  return cudaGetLastError();
}
template <class T>
cudaError_t silu(const void* d_a, const void* h, const std::int32_t* ends, int experts, std::int64_t rows,
                 std::int64_t width, void* out, cudaStream_t stream) {
  silu_rows<T><<<blocks(rows), kThreads, 0, stream>>>(as<T>(d_a), as<T>(h), ends, experts, width, as<T>(out));
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_rows_of_experts(RowType type, const void* x, const DeviceRoute& route, std::int64_t d,
                                   void* rows, cudaStream_t stream) {
  if (route.tokens == 0) return cudaSuccess;
  return type == RowType::fp32 ? gather<float>(x, route, d, rows, stream)
                               : gather<__nv_bfloat16>(x, route, d, rows, stream);
}

cudaError_t launch_weighted_sum(RowType type, const void* y, const void* gates, const DeviceRoute& route,
                                std::int64_t d, void* out, cudaStream_t stream) {
  if (route.tokens == 0) return cudaSuccess;
  return type == RowType::fp32 ? sum<float>(y, gates, route, d, out, stream)
                               : sum<__nv_bfloat16>(y, gates, route, d, out, stream);
}

cudaError_t launch_weighted_sum_backward(RowType type, const void* d_out, const void* y, const void* gates,
                                         const DeviceRoute& route, std::int64_t d, void* d_y, void* d_gates,
                                         cudaStream_t stream) {
  if (route.tokens == 0) return cudaSuccess;
  return type == RowType::fp32 ? sum_backward<float>(d_out, y, gates, route, d, d_y, d_gates, stream)
                               : sum_backward<__nv_bfloat16>(d_out, y, gates, route, d, d_y, d_gates, stream);
}

cudaError_t launch_silu(RowType type, const void* d_a, const void* h, const std::int32_t* ends, int experts,
                        std::int64_t rows, std::int64_t width, void* out, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  return type == RowType::fp32 ? silu<float>(d_a, h, ends, experts, rows, width, out, stream)
                               : silu<__nv_bfloat16>(d_a, h, ends, experts, rows, width, out, stream);
}

}  // namespace fomoe::trainer
