// The GPU kernel of outer_step.hpp. outer_step_row.hpp has the arithmetic, which the CPU tests run too. One
// thread works on 4 elements.
#include "trainer/kernels/gpu_team.cuh"
#include "trainer/kernels/outer_step/outer_step_kernels.hpp"

namespace fomoe::trainer {
namespace {

constexpr int kThreads = 256;

template <int W>
__global__ void nesterov(NesterovStep<float> step) {
  const std::int64_t i = W * (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x);
  if (i < step.n) nesterov_elements<W>(step, i);
}

}  // namespace

cudaError_t launch_nesterov(const NesterovStep<float>& step, cudaStream_t stream) {
  const bool packs = in_packs<float>(step.n, {step.anchor, step.momentum, step.difference});
  const std::int64_t per_block = kThreads * (packs ? 4 : 1);
  const auto blocks = static_cast<unsigned>((step.n + per_block - 1) / per_block);
  if (packs) {
    nesterov<4><<<blocks, kThreads, 0, stream>>>(step);
  } else {
    nesterov<1><<<blocks, kThreads, 0, stream>>>(step);
  }
  return cudaGetLastError();
}

}  // namespace fomoe::trainer
