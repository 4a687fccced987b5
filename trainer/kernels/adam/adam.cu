// The GPU kernel of adam.hpp. adam_row.hpp has the arithmetic, which the CPU runs too.
//
// One launch takes many tensors, since most tensors of a model are small: a block finds its tensor, and its
// part of the tensor, from its block number. The table of tensors is an argument of the launch.
#include <cuda_bf16.h>

#include "trainer/kernels/adam/adam_kernels.hpp"
#include "trainer/kernels/gpu_team.cuh"

namespace fomoe::trainer {
namespace {

constexpr int kThreads = 256, kMostPieces = 48;
using Copy = __nv_bfloat16;

template <class G>
constexpr int kPack = 16 / sizeof(Sum<G>);  // masters and moments are read 16 bytes at a time
constexpr std::int64_t kPerBlock = 16384;   // elements

struct Pieces {
  AdamPiece of[kMostPieces];
  unsigned end[kMostPieces];  // one past the piece's last block
};
static_assert(sizeof(AdamSettings) + sizeof(Pieces) <= 4096, "the arguments of a launch are at most 4 KB");

// How blocks divide a piece: into spans, and each span into blocks. All blocks of a span have one expert,
// unless each expert has a column. Then the whole matrix is a single span, whose blocks have whole rows.
struct Division {
  bool columns;
  std::int64_t span, per_block, blocks_of_span;
};

__host__ __device__ inline Division division(const AdamPiece& piece) {
  const bool columns = piece.run == 1 && piece.experts > 1;
  const std::int64_t rows = piece.experts < kPerBlock ? kPerBlock / piece.experts : 1,
                     span = columns ? piece.n : piece.run,
                     per_block = columns ? rows * piece.experts : kPerBlock;
  return {columns, span, per_block, (span + per_block - 1) / per_block};
}

// Updates whole rows, from element `first` up to `end`, of a matrix with a column for each expert. Each
// thread keeps to one column, so it computes the factors of an expert once.
template <class G>
__device__ void update_columns(const AdamSettings& settings, const AdamPiece& piece, std::int64_t first,
                               std::int64_t end) {
  const int columns = piece.experts < kThreads ? static_cast<int>(piece.experts) : kThreads,
            rows = kThreads / columns, thread = static_cast<int>(threadIdx.x), row = thread / columns;
  if (row >= rows) return;
  for (std::int64_t expert = thread % columns; expert < piece.experts; expert += columns) {
    const AdamFactors<Sum<G>> factors = adam_factors<Sum<G>>(settings, piece, expert);
    for (std::int64_t i = first + row * piece.experts + expert; i < end; i += rows * piece.experts)
      adam_elements<G, Copy, 1>(piece, factors, i);
  }
}

template <class G, int W>
__global__ void __launch_bounds__(kThreads) adam(AdamSettings settings, Pieces pieces) {
  int p = 0;
  while (blockIdx.x >= pieces.end[p]) ++p;
  const AdamPiece& piece = pieces.of[p];
  const Division by = division(piece);
  const std::int64_t block = blockIdx.x - (p == 0 ? 0 : pieces.end[p - 1]), span = block / by.blocks_of_span,
                     first = span * by.span + block % by.blocks_of_span * by.per_block,
                     end_of_span = (span + 1) * by.span,
                     end = first + by.per_block < end_of_span ? first + by.per_block : end_of_span;
  if constexpr (W == 1) {
    if (by.columns) return update_columns<G>(settings, piece, first, end);
  }
  const AdamFactors<Sum<G>> factors = adam_factors<Sum<G>>(settings, piece, span % piece.experts);
  for (std::int64_t i = first + W * static_cast<std::int64_t>(threadIdx.x); i < end; i += W * kThreads)
    adam_elements<G, Copy, W>(piece, factors, i);
}

// Whether packs of elements are aligned and have one expert each.
template <class G>
bool fits_packs(const AdamPiece& piece) {
  return in_packs<Sum<G>>(piece.run, {piece.master, piece.moment1, piece.moment2}) &&
         reinterpret_cast<std::uintptr_t>(piece.gradient) % (kPack<G> * sizeof(G)) == 0 &&
         reinterpret_cast<std::uintptr_t>(piece.copy) % (kPack<G> * sizeof(Copy)) == 0;
}

template <class G, int W>
cudaError_t launch(const AdamSettings& settings, const AdamPiece* pieces, std::int64_t count,
                   cudaStream_t stream) {
  Pieces batch{};
  int held = 0;
  unsigned blocks = 0;
  for (std::int64_t p = 0; p <= count; ++p) {
    if (held > 0 && (held == kMostPieces || p == count)) {
      adam<G, W><<<blocks, kThreads, 0, stream>>>(settings, batch);
      const cudaError_t error = cudaGetLastError();
      if (error != cudaSuccess) return error;
      held = 0;
      blocks = 0;
    }
    if (p == count || pieces[p].n == 0 || fits_packs<G>(pieces[p]) != (W > 1)) continue;
    const Division by = division(pieces[p]);
    blocks += static_cast<unsigned>(pieces[p].n / by.span * by.blocks_of_span);
    batch.of[held] = pieces[p];
    batch.end[held++] = blocks;
  }
  return cudaSuccess;
}

template <class G>
cudaError_t launch(const AdamSettings& settings, const AdamPiece* pieces, std::int64_t count,
                   cudaStream_t stream) {
  const cudaError_t error = launch<G, kPack<G>>(settings, pieces, count, stream);
  return error != cudaSuccess ? error : launch<G, 1>(settings, pieces, count, stream);
}

}  // namespace

cudaError_t launch_adam(AdamType type, const AdamSettings& settings, const AdamPiece* pieces,
                        std::int64_t count, cudaStream_t stream) {
  switch (type) {
    case AdamType::fp64:
      return launch<double>(settings, pieces, count, stream);
    case AdamType::fp32:
      return launch<float>(settings, pieces, count, stream);
    case AdamType::bf16:
      return launch<__nv_bfloat16>(settings, pieces, count, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace fomoe::trainer
