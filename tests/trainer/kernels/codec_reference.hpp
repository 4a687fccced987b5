// A reference implementation of codec.hpp that works bit by bit and with a sort: slow and short.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "trainer/torch.hpp"

namespace fomoe::trainer::testing {

/// Writes codes of `bits` bits one after another, the first code in the lowest bits of a byte.
class BitWriter {
 public:
  void put(std::uint64_t code, int bits) {
    for (int b = 0; b < bits; ++b, ++at_) {
      if (at_ % 8 == 0) bytes.push_back(0);
      const std::uint64_t bit = b < 64 ? (code >> b) & 1 : 0;
      bytes.back() = static_cast<std::uint8_t>(bytes.back() | (bit << (at_ % 8)));
    }
  }
  std::vector<std::uint8_t> bytes;

 private:
  std::int64_t at_ = 0;
};

inline std::vector<std::uint8_t> encode_blocks_reference(const std::vector<float>& x, int bits,
                                                         std::size_t block) {
  const float largest_code = static_cast<float>((1 << (bits - 1)) - 1);
  BitWriter codes, scales;
  for (std::size_t begin = 0; begin < x.size(); begin += block) {
    const std::size_t end = std::min(x.size(), begin + block);
    float scale = 0;
    for (std::size_t i = begin; i < end; ++i) scale = std::max(scale, std::abs(x[i]));  // skips NaN
    for (std::size_t i = begin; i < end; ++i) {
      const float q = x[i] / scale * largest_code;
      const long code = scale > 0 && !std::isnan(q) ? std::lround(q) : 0;
      codes.put(static_cast<std::uint64_t>(code + (1 << (bits - 1))), bits);
    }
    std::uint32_t scale_bits = 0;
    std::memcpy(&scale_bits, &scale, sizeof scale);
    scales.put(scale_bits, 32);
  }
  codes.bytes.insert(codes.bytes.end(), scales.bytes.begin(), scales.bytes.end());
  return codes.bytes;
}

/// The kept values, and their positions within their group.
inline std::pair<std::vector<float>, std::vector<std::uint32_t>> top_k_reference(const std::vector<float>& x,
                                                                                 double share,
                                                                                 std::size_t group) {
  const auto before = [&](std::size_t n) {
    return static_cast<std::size_t>(std::ceil(share * static_cast<double>(n)));
  };
  std::pair<std::vector<float>, std::vector<std::uint32_t>> out;
  for (std::size_t begin = 0; begin < x.size(); begin += std::min(group, x.size())) {
    const std::size_t end = std::min(x.size() - begin, group) + begin;
    std::vector<std::uint32_t> order(end - begin);
    std::iota(order.begin(), order.end(), 0u);
    const auto magnitude = [&](std::uint32_t i) {
      const float value = std::abs(x[begin + i]);
      return std::isnan(value) ? std::numeric_limits<double>::infinity()
                               : std::min<double>(value, std::numeric_limits<float>::max());
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return magnitude(a) > magnitude(b); });
    order.resize(before(end) - before(begin));
    std::sort(order.begin(), order.end());
    for (const std::uint32_t i : order) {
      out.first.push_back(x[begin + i]);
      out.second.push_back(i);
    }
  }
  return out;
}

}  // namespace fomoe::trainer::testing
