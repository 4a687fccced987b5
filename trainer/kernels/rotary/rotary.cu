// The GPU kernels of rotary.hpp. rotary_row.hpp has the arithmetic, which the CPU runs too. One block works
// on each token.
#include <cuda_bf16.h>

#include "trainer/kernels/gpu_team.cuh"
#include "trainer/kernels/rotary/rotary_kernels.hpp"

namespace fomoe::trainer {
namespace {

constexpr int kThreads = 128;

template <class T, int W>
__global__ void __launch_bounds__(kThreads) rotary(Rotary arguments) {
  rotary_token<T, W>(BlockTeam<kThreads>{}, arguments, blockIdx.x);
}
template <class T, int W>
__global__ void __launch_bounds__(kThreads) rotary_backward(Rotary arguments) {
  rotary_token_backward<T, W>(BlockTeam<kThreads>{}, arguments, blockIdx.x);
}

template <class T>
cudaError_t launch(bool backward, const Rotary& a, cudaStream_t stream) {
  if (a.tokens == 0) return cudaSuccess;
  constexpr int kPack = 16 / sizeof(T);
  const bool packs = in_packs<T>(a.half, {a.qkv, a.q, a.k, a.v, a.cos, a.sin});
  const auto blocks = static_cast<unsigned>(a.tokens);
  if (backward && packs) rotary_backward<T, kPack><<<blocks, kThreads, 0, stream>>>(a);
  if (backward && !packs) rotary_backward<T, 1><<<blocks, kThreads, 0, stream>>>(a);
  if (!backward && packs) rotary<T, kPack><<<blocks, kThreads, 0, stream>>>(a);
  if (!backward && !packs) rotary<T, 1><<<blocks, kThreads, 0, stream>>>(a);
  return cudaGetLastError();
}

cudaError_t launch(RowType type, bool backward, const Rotary& arguments, cudaStream_t stream) {
  return type == RowType::fp32 ? launch<float>(backward, arguments, stream)
                               : launch<__nv_bfloat16>(backward, arguments, stream);
}

}  // namespace

cudaError_t launch_rotary(RowType type, const Rotary& arguments, cudaStream_t stream) {
  return launch(type, /*backward=*/false, arguments, stream);
}
cudaError_t launch_rotary_backward(RowType type, const Rotary& arguments, cudaStream_t stream) {
  return launch(type, /*backward=*/true, arguments, stream);
}

}  // namespace fomoe::trainer
