// The arithmetic of codec.hpp. Each function handles one block or group that a team works on, or one byte.
// The CPU and the GPU give the same bytes, since each operation is rounded separately and all sums are of
// integers. This header is C++17 without LibTorch, since nvcc reads it.
#pragma once
#include <cmath>
#include <cstring>

#include "trainer/kernels/team.hpp"

namespace fomoe::trainer {

// ---- integers with a scale for each block ----

/// n values in codes of 2, 4 or 8 bits, the first code in the lowest bits of a byte. After all codes follows
/// one fp32 scale for each `block` values.
struct BlockCodes {
  std::int64_t n, block;
  int bits;

  [[nodiscard]] FOMOE_DEVICE std::int64_t blocks() const { return (n + block - 1) / block; }
  [[nodiscard]] FOMOE_DEVICE std::int64_t code_bytes() const { return (n * bits + 7) / 8; }
  /// Whether no byte of codes is shared by two blocks.
  [[nodiscard]] FOMOE_DEVICE bool whole_bytes() const { return block * bits % 8 == 0; }
  [[nodiscard]] FOMOE_DEVICE int largest_code() const { return (1 << (bits - 1)) - 1; }
};

FOMOE_DEVICE inline float scale_of_block(const BlockCodes& a, const std::uint8_t* bytes, std::int64_t block) {
  float scale = 0;  // memcpy: the address may be unaligned
  memcpy(&scale, bytes + a.code_bytes() + block * static_cast<std::int64_t>(sizeof scale), sizeof scale);
  return scale;
}

/// The code of x: q = round(x·(2^(b−1) − 1)/scale) with b = bits, shifted to a number from 1 to 2^b − 1. If x
/// or the scale is NaN, or if the scale is 0, the result is the code of q = 0.
FOMOE_DEVICE inline unsigned code_of(const BlockCodes& a, float x, float scale) {
  const float q = x / scale * static_cast<float>(a.largest_code());
  const int code = scale > 0 && q == q ? static_cast<int>(std::lround(q)) : 0;
  return static_cast<unsigned>(code + (1 << (a.bits - 1)));
}

/// One byte of codes. scale(i) is the scale of value i.
template <class Scale>
FOMOE_DEVICE std::uint8_t byte_of_codes(const BlockCodes& a, const float* x, std::int64_t byte,
                                        const Scale& scale) {
  const std::int64_t per_byte = 8 / a.bits;
  unsigned out = 0;
  for (std::int64_t j = 0; j < per_byte; ++j) {
    const std::int64_t i = byte * per_byte + j;
    if (i < a.n) out |= code_of(a, x[i], scale(i)) << (j * a.bits);
  }
  return static_cast<std::uint8_t>(out);
}

/// Writes the scale of a block, max|x|, and also its codes if the block shares no byte with another block.
template <class Team>
FOMOE_DEVICE void encode_block(const Team& team, const BlockCodes& a, const float* x, std::int64_t block,
                               std::uint8_t* bytes) {
  const std::int64_t begin = block * a.block, end = begin + a.block < a.n ? begin + a.block : a.n;
  float scale = 0;
  for (std::int64_t i = begin + team.rank(); i < end; i += team.size()) {
    const float magnitude = std::fabs(x[i]);
    scale = scale < magnitude ? magnitude : scale;  // skips NaN
  }
  scale = team.largest(scale);
  if (team.rank() == 0) {
    memcpy(bytes + a.code_bytes() + block * static_cast<std::int64_t>(sizeof scale), &scale, sizeof scale);
  }
  if (!a.whole_bytes()) return;
  const std::int64_t last = (end * a.bits + 7) / 8;
  for (std::int64_t byte = begin * a.bits / 8 + team.rank(); byte < last; byte += team.size())
    bytes[byte] = byte_of_codes(a, x, byte, [&](std::int64_t) { return scale; });
}

/// Writes one byte of codes, for blocks that share bytes. All scales must have been written before.
FOMOE_DEVICE inline void encode_shared_byte(const BlockCodes& a, const float* x, std::int64_t byte,
                                            std::uint8_t* bytes) {
  bytes[byte] =
      byte_of_codes(a, x, byte, [&](std::int64_t i) { return scale_of_block(a, bytes, i / a.block); });
}

template <class Team>
FOMOE_DEVICE void decode_block(const Team& team, const BlockCodes& a, const std::uint8_t* bytes,
                               std::int64_t block, float* x) {
  const std::int64_t begin = block * a.block, end = begin + a.block < a.n ? begin + a.block : a.n;
  const float scale = scale_of_block(a, bytes, block), largest = static_cast<float>(a.largest_code());
  for (std::int64_t i = begin + team.rank(); i < end; i += team.size()) {
    const unsigned code = (bytes[i * a.bits / 8] >> (i * a.bits % 8)) & ((1u << a.bits) - 1);
    x[i] = static_cast<float>(static_cast<int>(code) - (1 << (a.bits - 1))) / largest * scale;
  }
}

// ---- the largest values of each group ----

/// Keeps the given share of each `group` consecutive values: those of largest magnitude, and of equal
/// magnitudes the first ones. In all, ⌈share·n⌉ values are kept.
struct TopK {
  std::int64_t n, group;
  double share;

  [[nodiscard]] FOMOE_DEVICE std::int64_t groups() const { return (n + group - 1) / group; }
  /// How many of the first `values` values are kept.
  [[nodiscard]] FOMOE_DEVICE std::int64_t kept_before(std::int64_t values) const {
    return static_cast<std::int64_t>(std::ceil(share * static_cast<double>(values)));
  }
};

/// The bits of |x| as an integer. These integers have the same order as the values |x|, with NaN as the
/// largest.
FOMOE_DEVICE inline std::uint32_t magnitude(float x) {
  std::uint32_t bits = 0;
  memcpy(&bits, &x, sizeof bits);
  return bits & 0x7fffffffu;
}

/// A group: where its values begin, how many there are, and how many are kept, in all groups before it and in
/// itself.
struct TopKGroup {
  std::int64_t begin, size, kept_before, count;

  FOMOE_DEVICE TopKGroup(const TopK& a, std::int64_t group)
      : begin(group * a.group),
        size(begin + a.group < a.n ? a.group : a.n - begin),
        kept_before(a.kept_before(begin)),
        count(a.kept_before(begin + size) - kept_before) {}
};

/// How many magnitudes of `size` values are at least `least`.
template <class Team>
FOMOE_DEVICE std::int64_t number_from(const Team& team, const float* in, std::int64_t size,
                                      std::uint32_t least) {
  std::int64_t found = 0;
  for (std::int64_t i = team.rank(); i < size; i += team.size()) found += magnitude(in[i]) >= least ? 1 : 0;
  return team.sum(found);
}

/// A threshold that at least `count` > 0 magnitudes of `size` values reach, and that fewer exceed. It is
/// found bit by bit, from the highest one.
template <class Team>
FOMOE_DEVICE std::uint32_t kept_threshold(const Team& team, const float* in, std::int64_t size,
                                          std::int64_t count) {
  std::uint32_t threshold = 0;
  for (std::uint32_t bit = 1u << 30; bit != 0; bit /= 2) {
    const std::int64_t found = number_from(team, in, size, threshold | bit);
    if (found >= count) threshold |= bit;
    if (found == count) break;  // exactly the wanted values reach it
  }
  return threshold;
}

/// Writes the kept values of a group in the order of their positions; positions count from the group's first
/// value. `threshold` is that of kept_threshold().
template <class Team>
FOMOE_DEVICE void write_kept(const Team& team, const TopKGroup& group, const float* in,
                             std::uint32_t threshold, float* values, std::uint32_t* positions) {
  const std::int64_t size = group.size, first = group.kept_before;
  const std::int64_t equal_kept = group.count - number_from(team, in, size, threshold + 1);
  std::int64_t above = 0, equal = 0;  // counts before the values that the members look at in this pass
  for (std::int64_t base = 0; base < size; base += team.size()) {
    const std::int64_t i = base + team.rank();
    const std::uint32_t own = i < size ? magnitude(in[i]) : 0;
    const bool is_above = i < size && own > threshold, is_equal = i < size && own == threshold;
    // Both counts are summed as one number: neither exceeds the size of the team, which is less than 2^32.
    const auto before =
        team.before((is_above ? std::int64_t{1} : 0) + (is_equal ? std::int64_t{1} << 32 : 0));
    const std::int64_t above_here = above + (before.sum & 0xffffffff),
                       equal_here = equal + (before.sum >> 32);
    if (is_above || (is_equal && equal_here < equal_kept)) {
      const std::int64_t to = first + above_here + (equal_here < equal_kept ? equal_here : equal_kept);
      values[to] = in[i];
      positions[to] = static_cast<std::uint32_t>(i);
    }
    above += before.all & 0xffffffff;
    equal += before.all >> 32;
  }
}

template <class Team>
FOMOE_DEVICE void top_k_of_group(const Team& team, const TopK& a, const float* x, std::int64_t index,
                                 float* values, std::uint32_t* positions) {
  const TopKGroup group(a, index);
  if (group.count == 0) return;
  const float* in = x + group.begin;
  write_kept(team, group, in, kept_threshold(team, in, group.size, group.count), values, positions);
}

/// One byte of a sequence of numbers of `bits` bits each, the first number in the lowest bits.
FOMOE_DEVICE inline std::uint8_t byte_of_positions(const std::uint32_t* positions, std::int64_t count,
                                                   int bits, std::int64_t byte) {
  unsigned out = 0;
  for (int b = 0; b < 8; ++b) {
    const std::int64_t bit = 8 * byte + b, index = bit / bits;
    const int within = static_cast<int>(bit % bits);
    if (index < count && within < 32) out |= ((positions[index] >> within) & 1u) << b;
  }
  return static_cast<std::uint8_t>(out);
}

/// The lowest 32 bits of number `index` in a sequence of numbers of `bits` bits each.
FOMOE_DEVICE inline std::int64_t position_at(const std::uint8_t* bytes, int bits, std::int64_t index) {
  std::int64_t out = 0;
  for (int b = 0; b < bits && b < 32; ++b) {
    const std::int64_t bit = index * bits + b;
    out |= static_cast<std::int64_t>((bytes[bit / 8] >> (bit % 8)) & 1) << b;
  }
  return out;
}

/// Reads the packed positions of a group and writes them as positions among all n values.
template <class Team>
FOMOE_DEVICE void positions_of_group(const Team& team, const TopK& a, const std::uint8_t* bytes, int bits,
                                     std::int64_t group, std::int64_t* positions) {
  const std::int64_t begin = group * a.group, end = begin + a.group < a.n ? begin + a.group : a.n;
  const std::int64_t last = a.kept_before(end);
  for (std::int64_t j = a.kept_before(begin) + team.rank(); j < last; j += team.size())
    positions[j] = begin + position_at(bytes, bits, j);
}

}  // namespace fomoe::trainer
