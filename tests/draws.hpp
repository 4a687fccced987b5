// Pseudorandom draws for tests, equal with every standard library.
#pragma once
#include <cstdint>
#include <random>

namespace fomoe::tests {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : engine_(seed) {}
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  int below(int end) { return static_cast<int>(between(0, end)); }
  bool chance(double share) { return between(0, 1) < share; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace fomoe::tests
