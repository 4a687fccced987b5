// The GPU kernels of expert_rows.hpp. expert_rows_row.hpp has the arithmetic, which the CPU runs too.
//
// One warp works on each row or token, and its lanes read 16 bytes at a time; for SiLU, one thread
// works on 16 bytes. Warps of ghosts' rows return at once. The number of rows of local experts is read on the
// device, so nothing waits for the host.
#include <cuda_bf16.h>

#include "trainer/kernels/expert_rows/expert_rows_kernels.hpp"
#include "trainer/kernels/gpu_team.cuh"

namespace fomoe::trainer {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

__device__ std::int64_t warp_index() {
  return static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
}

template <class T, int W>
__global__ void gather_rows(const T* x, RowRoute route, std::int64_t d, T* rows) {
  const std::int64_t row = warp_index();
  if (row < route.rows()) gather_row<T, W>(WarpTeam{}, x, route, d, row, rows);
}

template <class T, int W>
__global__ void sum_rows(const T* y, const T* gates, RowRoute route, std::int64_t d, T* out) {
  const std::int64_t token = warp_index();
  if (token < route.tokens) sum_rows_of_token<T, W>(WarpTeam{}, y, gates, route, d, token, out);
}

template <class T, int W>
__global__ void silu_rows(const T* h, const std::int32_t* ends, int experts, std::int64_t width, T* out) {
  const std::int64_t i = W * (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x);
  if (i < ends[experts - 1] * width) silu_elements<W>(h, i, out);
}

template <class T, int W>
__global__ void gated_silu_backward_of_rows(GatedSilu arguments, RowRoute route) {
  const std::int64_t row = warp_index();
  if (row < route.rows()) gated_silu_backward_of_row<T, W>(WarpTeam{}, arguments, route, row);
}

template <class T>
const T* as(const void* data) {
  return static_cast<const T*>(data);
}
template <class T>
T* as(void* data) {
  return static_cast<T*>(data);
}

unsigned blocks_for(std::int64_t work, std::int64_t per_block) {
  return static_cast<unsigned>((work + per_block - 1) / per_block);
}

template <class T>
constexpr int kPack = 16 / sizeof(T);

template <class T>
cudaError_t gather(const void* x, const RowRoute& route, std::int64_t d, void* rows, cudaStream_t stream) {
  const auto kernel = in_packs<T>(d, {x, rows}) ? gather_rows<T, kPack<T>> : gather_rows<T, 1>;
  kernel<<<blocks_for(route.tokens * route.chosen, kWarps), kThreads, 0, stream>>>(as<T>(x), route, d,
                                                                                   as<T>(rows));
  return cudaGetLastError();
}
template <class T>
cudaError_t sum(const void* y, const void* gates, const RowRoute& route, std::int64_t d, void* out,
                cudaStream_t stream) {
  const auto kernel = in_packs<T>(d, {y, out}) ? sum_rows<T, kPack<T>> : sum_rows<T, 1>;
  kernel<<<blocks_for(route.tokens, kWarps), kThreads, 0, stream>>>(as<T>(y), as<T>(gates), route, d,
                                                                    as<T>(out));
  return cudaGetLastError();
}
template <class T>
cudaError_t silu(const void* h, const std::int32_t* ends, int experts, std::int64_t rows, std::int64_t width,
                 void* out, cudaStream_t stream) {
  const bool packs = in_packs<T>(width, {h, out});
  const auto kernel = packs ? silu_rows<T, kPack<T>> : silu_rows<T, 1>;
  const std::int64_t per_block = std::int64_t{kThreads} * (packs ? kPack<T> : 1);
  kernel<<<blocks_for(rows * width, per_block), kThreads, 0, stream>>>(as<T>(h), ends, experts, width,
                                                                       as<T>(out));
  return cudaGetLastError();
}
template <class T>
cudaError_t gated_silu_backward(const GatedSilu& a, const RowRoute& route, cudaStream_t stream) {
  const auto kernel = in_packs<T>(a.width, {a.u, a.h, a.d_h, a.gated})
                          ? gated_silu_backward_of_rows<T, kPack<T>>
                          : gated_silu_backward_of_rows<T, 1>;
  kernel<<<blocks_for(route.tokens * route.chosen, kWarps), kThreads, 0, stream>>>(a, route);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_rows_of_experts(RowType type, const void* x, const RowRoute& route, std::int64_t d,
                                   void* rows, cudaStream_t stream) {
  if (route.tokens == 0) return cudaSuccess;
  return type == RowType::fp32 ? gather<float>(x, route, d, rows, stream)
                               : gather<__nv_bfloat16>(x, route, d, rows, stream);
}

cudaError_t launch_weighted_sum(RowType type, const void* y, const void* gates, const RowRoute& route,
                                std::int64_t d, void* out, cudaStream_t stream) {
  if (route.tokens == 0) return cudaSuccess;
  return type == RowType::fp32 ? sum<float>(y, gates, route, d, out, stream)
                               : sum<__nv_bfloat16>(y, gates, route, d, out, stream);
}

cudaError_t launch_silu(RowType type, const void* h, const std::int32_t* ends, int experts, std::int64_t rows,
                        std::int64_t width, void* out, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  return type == RowType::fp32 ? silu<float>(h, ends, experts, rows, width, out, stream)
                               : silu<__nv_bfloat16>(h, ends, experts, rows, width, out, stream);
}

cudaError_t launch_gated_silu_backward(RowType type, const GatedSilu& arguments, const RowRoute& route,
                                       cudaStream_t stream) {
  if (route.tokens == 0) return cudaSuccess;
  return type == RowType::fp32 ? gated_silu_backward<float>(arguments, route, stream)
                               : gated_silu_backward<__nv_bfloat16>(arguments, route, stream);
}

}  // namespace fomoe::trainer
