// Pseudorandom draws that are the same on every machine, and of which none depends on the order of others.
#pragma once
#include <cstdint>

namespace fomoe::costmodel {

/// A hash function (Steele et al. 2014, "SplitMix").
inline std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// A number in [0, 1), uniform: draw `which` of the connection `pair`, in the random stream `stream` of
/// `seed`.
inline double draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t pair, std::uint64_t which) {
  const std::uint64_t start = stream == 0 ? seed : seed ^ mixed(stream);
  return static_cast<double>(mixed(mixed(mixed(start) ^ pair) ^ which) >> 11) * 0x1p-53;
}

}  // namespace fomoe::costmodel
