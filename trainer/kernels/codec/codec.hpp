// Encodes values as bytes and decodes them on the device that holds them. On a GPU, only encoded bytes leave
// its memory. The GPU and the CPU give the same bytes for the same values, since both run codec_row.hpp.
// On an H100, encoding and decoding run at 40 to 63 % of a copy's bandwidth, and top-k at 10 to 13 %
// (experiments/measured).
#pragma once
#include <cstdint>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Encodes x as codes of 8, 4 or 2 bits: q = round(x·(2^(bits−1) − 1)/max|x|), where the maximum is taken
/// over each block of `block` values. After all codes follows the fp32 max|x| of each block. NaN is encoded
/// as 0. A block that contains an infinite value is decoded as NaN.
/// x fp32 [n], contiguous → uint8 [⌈n·bits/8⌉ + 4·⌈n/block⌉] on the device of x.
at::Tensor encode_blocks(const at::Tensor& x, int bits, std::int64_t block);

/// The inverse of encode_blocks: bytes, contiguous → fp32 [n].
at::Tensor decode_blocks(const at::Tensor& bytes, std::int64_t n, int bits, std::int64_t block);

/// The number of values that a top-k of n values keeps: ⌈share·n⌉.
std::int64_t kept_values(std::int64_t n, double share);

/// The values that a top-k keeps, by group of 2^index_bits values, in the order of their positions.
struct KeptValues {
  at::Tensor values;     // fp32 [⌈share·n⌉]
  at::Tensor positions;  // int32 [⌈share·n⌉], to be read as unsigned: position within the group
};

/// Keeps the given share of the values of each group of 2^index_bits values: those of largest magnitude, and
/// of equal magnitudes the first ones. NaN counts as the largest magnitude.
/// x fp32 [n], contiguous, n ≤ 2^32.
KeptValues largest_of_groups(const at::Tensor& x, double share, int index_bits);

/// Packs the positions of largest_of_groups, with index_bits bits for each position and the first position in
/// the lowest bits: positions → uint8 [⌈count·index_bits/8⌉].
at::Tensor pack_positions(const at::Tensor& positions, int index_bits);

/// The inverse of pack_positions, except that the results are positions among all n values, not within a
/// group. bytes, contiguous → int64 [⌈share·n⌉].
at::Tensor unpack_positions(const at::Tensor& bytes, std::int64_t n, double share, int index_bits);

}  // namespace fomoe::trainer
