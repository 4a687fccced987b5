// Values to bytes and back where they are: on the GPU, so that its memory reads them and only bytes leave it,
// or on the CPU. Both give the same bytes for the same values (codec_row.hpp is run by both).
//
// Not run on a GPU yet: the kernels compile for sm_90, and tests/trainer/gpu/codec_test.cpp waits for a
// machine with one.
#pragma once
#include <cstdint>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Codes of 8, 4 or 2 bits, q = round(x·(2^(bits−1) − 1)/max|x|) of each `block` values, then the fp32 max|x|
/// of all blocks. NaN counts as 0; a block with an infinite value comes back as NaN.
/// x fp32 [n], contiguous → uint8 [⌈n·bits/8⌉ + 4·⌈n/block⌉] on its device.
at::Tensor encode_blocks(const at::Tensor& x, int bits, std::int64_t block);

/// The inverse: bytes, contiguous → fp32 [n].
at::Tensor decode_blocks(const at::Tensor& bytes, std::int64_t n, int bits, std::int64_t block);

/// Values that a top-k of n keeps: ⌈share·n⌉.
std::int64_t kept_values(std::int64_t n, double share);

/// Which values a top-k keeps, group by group of 2^index_bits values, in the order of their positions.
struct KeptValues {
  at::Tensor values;     // fp32 [⌈share·n⌉]
  at::Tensor positions;  // int32 [⌈share·n⌉], bits of an unsigned number: in the group
};

/// Of each group the share of largest magnitude, of equal magnitudes the first ones; NaN is the largest.
/// x fp32 [n], contiguous, n ≤ 2^32.
KeptValues largest_of_groups(const at::Tensor& x, double share, int index_bits);

/// positions as largest_of_groups gives them → uint8 [⌈count·index_bits/8⌉], the first in the lowest bits.
at::Tensor pack_positions(const at::Tensor& positions, int index_bits);

/// Its inverse, but as positions among all n values: bytes, contiguous → int64 [⌈share·n⌉].
at::Tensor unpack_positions(const at::Tensor& bytes, std::int64_t n, double share, int index_bits);

}  // namespace fomoe::trainer
