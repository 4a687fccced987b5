// The GPU kernels of peri_norm.hpp. peri_norm_row.hpp has the arithmetic, which the CPU runs too.
//
// In the forward pass, one block works on each row and keeps it in shared memory, so that x and y are read
// once, and x' and its LN are written once. In the backward pass, kPeriNormTeams blocks take rows in turn,
// and sum the gradients of the scales in shared memory, in a fixed order.
#include <cuda_bf16.h>

#include "trainer/kernels/gpu_team.cuh"
#include "trainer/kernels/peri_norm/peri_norm_kernels.hpp"

namespace fomoe::trainer {
namespace {

constexpr int kThreads = 128;
extern __shared__ float4 shared[];  // float4, so that packs are aligned

template <class T, int W>
__global__ void __launch_bounds__(kThreads) peri_norm(PeriNorm arguments) {
  peri_norm_row<T, W>(BlockTeam<kThreads>{}, arguments, blockIdx.x, reinterpret_cast<float*>(shared));
}

template <class T, int W>
__global__ void __launch_bounds__(kThreads) peri_norm_backward(PeriNormBackward arguments) {
  peri_norm_backward_rows<T, W>(BlockTeam<kThreads>{}, arguments, blockIdx.x,
                                reinterpret_cast<float*>(shared));
}

template <class Arguments>
cudaError_t launch(void (*kernel)(Arguments), std::int64_t blocks, std::int64_t scratch_elements,
                   const Arguments& arguments, cudaStream_t stream) {
  if (blocks == 0) return cudaSuccess;
  const auto bytes = static_cast<int>(scratch_elements * static_cast<std::int64_t>(sizeof(float)));
  // A kernel must explicitly request shared memory above 48 KiB. The few bytes that the team uses count too:
  // the backward pass with d = 4096 needs 3·d·4 B = 48 KiB of scratch memory and these bytes, which exceeds
  // the limit.
  if (bytes > 40 * 1024) {
    const cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
  }
  kernel<<<static_cast<unsigned>(blocks), kThreads, static_cast<std::size_t>(bytes), stream>>>(arguments);
  return cudaGetLastError();
}

template <class T>
cudaError_t forward(const PeriNorm& a, cudaStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const bool packs = in_packs<T>(a.d, {a.x, a.y, a.out_scale, a.in_scale, a.sum, a.normed});
  return launch(packs ? peri_norm<T, kPack> : peri_norm<T, 1>, a.rows, kPeriNormScratch * a.d, a, stream);
}

template <class T>
cudaError_t backward(const PeriNormBackward& a, cudaStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const bool packs =
      in_packs<T>(a.d, {a.d_sum, a.d_normed, a.sum, a.y, a.out_scale, a.in_scale, a.d_x, a.d_y, a.partial});
  return launch(packs ? peri_norm_backward<T, kPack> : peri_norm_backward<T, 1>, a.teams,
                kPeriNormBackwardScratch * a.d, a, stream);
}

}  // namespace

cudaError_t launch_peri_norm(RowType type, const PeriNorm& arguments, cudaStream_t stream) {
  return type == RowType::fp32 ? forward<float>(arguments, stream)
                               : forward<__nv_bfloat16>(arguments, stream);
}

cudaError_t launch_peri_norm_backward(RowType type, const PeriNormBackward& arguments, cudaStream_t stream) {
  return type == RowType::fp32 ? backward<float>(arguments, stream)
                               : backward<__nv_bfloat16>(arguments, stream);
}

}  // namespace fomoe::trainer
