// The GPU kernel of adam.hpp. adam_row.hpp has the arithmetic, which the CPU runs too. Not run on a GPU yet.
//
// One launch takes many tensors, since most tensors of a model are small: a block finds its tensor, and its
// part of the tensor, from its block number. The table of tensors is an argument of the launch.
#include <cuda_bf16.h>

#include "trainer/kernels/adam/adam_kernels.hpp"
#include "trainer/kernels/gpu_team.cuh"

namespace fomoe::trainer {
namespace {

constexpr int kThreads = 256, kMostPieces = 48;  // 56 B each: the arguments of a launch are at most 4 KB
constexpr int kPack = 4;                         // 16 B of fp32
constexpr std::int64_t kPerBlock = 16384;        // elements

struct Pieces {
  AdamPiece of[kMostPieces];
  unsigned end[kMostPieces];  // one past the piece's last block
};

template <class T, int W>
__global__ void __launch_bounds__(kThreads) adam(AdamSettings settings, Pieces pieces) {
  int p = 0;
  while (blockIdx.x >= pieces.end[p]) ++p;
  const AdamPiece& piece = pieces.of[p];
  const std::int64_t first = kPerBlock * (blockIdx.x - (p == 0 ? 0 : pieces.end[p - 1]));
  const std::int64_t end = first + kPerBlock < piece.n ? first + kPerBlock : piece.n;
  const AdamFactors<Sum<T>> factors = adam_factors<Sum<T>>(settings, piece);
  for (std::int64_t i = first + W * static_cast<std::int64_t>(threadIdx.x); i < end; i += W * kThreads)
    adam_elements<T, W>(settings, piece, factors, i);
}

template <class T>
bool fits_packs(const AdamPiece& piece) {
  return in_packs<Sum<T>>(piece.n, {piece.master, piece.moment1, piece.moment2}) &&
         reinterpret_cast<std::uintptr_t>(piece.gradient) % (kPack * sizeof(T)) == 0 &&
         reinterpret_cast<std::uintptr_t>(piece.copy) % (kPack * sizeof(T)) == 0;
}

template <class T, int W>
cudaError_t launch(const AdamSettings& settings, const AdamPiece* pieces, std::int64_t count,
                   cudaStream_t stream) {
  Pieces batch{};
  int held = 0;
  unsigned blocks = 0;
  for (std::int64_t p = 0; p <= count; ++p) {
    if (held > 0 && (held == kMostPieces || p == count)) {
      adam<T, W><<<blocks, kThreads, 0, stream>>>(settings, batch);
      const cudaError_t error = cudaGetLastError();
      if (error != cudaSuccess) return error;
      held = 0;
      blocks = 0;
    }
    if (p == count || pieces[p].n == 0 || fits_packs<T>(pieces[p]) != (W > 1)) continue;
    blocks += static_cast<unsigned>((pieces[p].n + kPerBlock - 1) / kPerBlock);
    batch.of[held] = pieces[p];
    batch.end[held++] = blocks;
  }
  return cudaSuccess;
}

template <class T>
cudaError_t launch(const AdamSettings& settings, const AdamPiece* pieces, std::int64_t count,
                   cudaStream_t stream) {
  const cudaError_t error = launch<T, kPack>(settings, pieces, count, stream);
  return error != cudaSuccess ? error : launch<T, 1>(settings, pieces, count, stream);
}

}  // namespace

cudaError_t launch_adam(RowType type, const AdamSettings& settings, const AdamPiece* pieces,
                        std::int64_t count, cudaStream_t stream) {
  return type == RowType::fp32 ? launch<float>(settings, pieces, count, stream)
                               : launch<__nv_bfloat16>(settings, pieces, count, stream);
}

}  // namespace fomoe::trainer
