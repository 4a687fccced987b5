// The GPU kernels of codec.hpp. codec_row.hpp has the arithmetic, which the CPU runs too.
//
// One warp works on each block of values that share a scale (256 values by default), and one block of threads
// on each group of a top-k (some thousand values). Values are read from memory once, and then again from the
// cache.
#include "trainer/kernels/codec/codec_kernels.hpp"
#include "trainer/kernels/gpu_team.cuh"

namespace fomoe::trainer {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

__device__ std::int64_t warp_index() {
  return static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
}
__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
unsigned blocks_for(std::int64_t work, std::int64_t per_block) {
  return static_cast<unsigned>((work + per_block - 1) / per_block);
}

__global__ void encode_blocks(BlockCodes codes, const float* x, std::uint8_t* bytes) {
  const std::int64_t block = warp_index();
  if (block < codes.blocks()) encode_block(WarpTeam{}, codes, x, block, bytes);
}
__global__ void encode_shared_bytes(BlockCodes codes, const float* x, std::uint8_t* bytes) {
  const std::int64_t byte = thread_index();
  if (byte < codes.code_bytes()) encode_shared_byte(codes, x, byte, bytes);
}
__global__ void decode_blocks(BlockCodes codes, const std::uint8_t* bytes, float* x) {
  const std::int64_t block = warp_index();
  if (block < codes.blocks()) decode_block(WarpTeam{}, codes, bytes, block, x);
}
__global__ void top_k(TopK top, const float* x, float* values, std::uint32_t* positions) {
  top_k_of_group(BlockTeam<kThreads>{}, top, x, blockIdx.x, values, positions);
}
__global__ void pack_positions(const std::uint32_t* positions, std::int64_t count, int bits,
                               std::int64_t bytes, std::uint8_t* out) {
  const std::int64_t byte = thread_index();
  if (byte < bytes) out[byte] = byte_of_positions(positions, count, bits, byte);
}
__global__ void unpack_positions(TopK top, const std::uint8_t* bytes, int bits, std::int64_t* positions) {
  positions_of_group(BlockTeam<kThreads>{}, top, bytes, bits, blockIdx.x, positions);
}

}  // namespace

cudaError_t launch_encode_blocks(const BlockCodes& codes, std::int64_t blocks, const float* x,
                                 std::uint8_t* bytes, cudaStream_t stream) {
  encode_blocks<<<blocks_for(blocks, kWarps), kThreads, 0, stream>>>(codes, x, bytes);
  return cudaGetLastError();
}

cudaError_t launch_encode_shared_bytes(const BlockCodes& codes, std::int64_t code_bytes, const float* x,
                                       std::uint8_t* bytes, cudaStream_t stream) {
  encode_shared_bytes<<<blocks_for(code_bytes, kThreads), kThreads, 0, stream>>>(codes, x, bytes);
  return cudaGetLastError();
}

cudaError_t launch_decode_blocks(const BlockCodes& codes, std::int64_t blocks, const std::uint8_t* bytes,
                                 float* x, cudaStream_t stream) {
  decode_blocks<<<blocks_for(blocks, kWarps), kThreads, 0, stream>>>(codes, bytes, x);
  return cudaGetLastError();
}

cudaError_t launch_top_k(const TopK& top, std::int64_t groups, const float* x, float* values,
                         std::uint32_t* positions, cudaStream_t stream) {
  top_k<<<static_cast<unsigned>(groups), kThreads, 0, stream>>>(top, x, values, positions);
  return cudaGetLastError();
}

cudaError_t launch_pack_positions(const std::uint32_t* positions, std::int64_t count, int bits,
                                  std::int64_t bytes, std::uint8_t* out, cudaStream_t stream) {
  pack_positions<<<blocks_for(bytes, kThreads), kThreads, 0, stream>>>(positions, count, bits, bytes, out);
  return cudaGetLastError();
}

cudaError_t launch_unpack_positions(const TopK& top, std::int64_t groups, const std::uint8_t* bytes, int bits,
                                    std::int64_t* positions, cudaStream_t stream) {
  unpack_positions<<<static_cast<unsigned>(groups), kThreads, 0, stream>>>(top, bytes, bits, positions);
  return cudaGetLastError();
}

}  // namespace fomoe::trainer
