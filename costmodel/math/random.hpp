// Random numbers that do not depend on the standard library: the same seed gives the same values on every
// platform.
#pragma once
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace fomoe::costmodel {

using RandomEngine = std::mt19937_64;

/// An independent random stream for each (seed, stream).
inline RandomEngine seeded_engine(std::uint64_t seed, std::uint64_t stream) {
  std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                         static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)};
  return RandomEngine(sequence);
}

/// Uniform integer below n, by rejection: std::uniform_int_distribution differs between libraries.
inline std::uint64_t below(RandomEngine& engine, std::uint64_t n) {
  const std::uint64_t limit = RandomEngine::max() - RandomEngine::max() % n;
  std::uint64_t value = engine();
  while (value >= limit) value = engine();
  return value % n;
}

template <typename T>
void shuffle(std::vector<T>& values, RandomEngine& engine) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(engine, i)]);
}

}  // namespace fomoe::costmodel
