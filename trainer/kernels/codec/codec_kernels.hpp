// The launch functions that codec.cu offers to codec.cpp. They take raw device pointers, so that nvcc never
// reads LibTorch's headers.
#pragma once
#include <cuda_runtime_api.h>

#include "trainer/kernels/codec/codec_row.hpp"

namespace fomoe::trainer {

// Each returns the launch error. `blocks`, `groups`, `count`, `bytes` and `code_bytes` are numbers of items,
// each at least 1.
cudaError_t launch_encode_blocks(const BlockCodes& codes, std::int64_t blocks, const float* x,
                                 std::uint8_t* bytes, cudaStream_t stream);
/// Writes the codes where blocks share bytes; launch it after launch_encode_blocks, which writes the scales.
cudaError_t launch_encode_shared_bytes(const BlockCodes& codes, std::int64_t code_bytes, const float* x,
                                       std::uint8_t* bytes, cudaStream_t stream);
cudaError_t launch_decode_blocks(const BlockCodes& codes, std::int64_t blocks, const std::uint8_t* bytes,
                                 float* x, cudaStream_t stream);
cudaError_t launch_top_k(const TopK& top, std::int64_t groups, const float* x, float* values,
                         std::uint32_t* positions, cudaStream_t stream);
cudaError_t launch_pack_positions(const std::uint32_t* positions, std::int64_t count, int bits,
                                  std::int64_t bytes, std::uint8_t* out, cudaStream_t stream);
cudaError_t launch_unpack_positions(const TopK& top, std::int64_t groups, const std::uint8_t* bytes, int bits,
                                    std::int64_t* positions, cudaStream_t stream);

}  // namespace fomoe::trainer
