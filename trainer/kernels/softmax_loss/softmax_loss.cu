// The GPU kernel of softmax_loss.hpp. softmax_loss_row.hpp has the arithmetic, which the CPU runs too.
//
// One block works on each row, and its threads read and write 16 bytes at a time. A row of 200,064 logits is
// larger than the shared memory of a multiprocessor, so the second pass reads it from the L2 cache or from
// memory.
#include <cuda_bf16.h>

#include "trainer/kernels/gpu_team.cuh"
#include "trainer/kernels/softmax_loss/softmax_loss_kernels.hpp"

namespace fomoe::trainer {
namespace {

constexpr int kThreads = 256;

template <class T, int W>
__global__ void __launch_bounds__(kThreads) softmax_loss(SoftmaxLoss arguments) {
  softmax_loss_row<T, W>(BlockTeam<kThreads>{}, arguments, blockIdx.x);
}

template <class T>
cudaError_t launch(const SoftmaxLoss& arguments, cudaStream_t stream) {
  const bool packs = in_packs<T>(arguments.stride, {arguments.logits});
  const auto kernel = packs ? softmax_loss<T, 16 / sizeof(T)> : softmax_loss<T, 1>;
  kernel<<<static_cast<unsigned>(arguments.rows), kThreads, 0, stream>>>(arguments);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_softmax_loss(RowType type, const SoftmaxLoss& arguments, cudaStream_t stream) {
  if (arguments.rows == 0) return cudaSuccess;
  return type == RowType::fp32 ? launch<float>(arguments, stream) : launch<__nv_bfloat16>(arguments, stream);
}

}  // namespace fomoe::trainer
