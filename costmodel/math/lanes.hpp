// Lanes of a sweep. Formulas are written once, as templates over V: `double` for one configuration, `Block`
// for a sweep, in which each lane is a configuration. A branch on an axis must therefore be arithmetic (min,
// max, products with 0 or 1).
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>

namespace fomoe::costmodel {

/// 64 configurations computed side by side: small enough for the first-level cache, without allocation. The
/// operators work lane by lane. They are compiled once, in lanes.cpp, since every method's formula uses them.
class Block {
 public:
  static constexpr std::size_t kLanes = 64;
  static Block constant(double value);

  [[nodiscard]] double operator[](std::size_t lane) const { return lanes_[lane]; }
  double& operator[](std::size_t lane) { return lanes_[lane]; }
  [[nodiscard]] const double* data() const { return lanes_.data(); }
  double* data() { return lanes_.data(); }

  Block& operator+=(const Block& other);
  Block& operator-=(const Block& other);
  Block& operator*=(const Block& other);
  Block& operator/=(const Block& other);
  Block& operator+=(double value);
  Block& operator-=(double value);
  Block& operator*=(double value);
  Block& operator/=(double value);

 private:
  alignas(16) std::array<double, kLanes> lanes_;
};

Block operator-(const Block& a);
Block operator+(const Block& a, const Block& b);
Block operator-(const Block& a, const Block& b);
Block operator*(const Block& a, const Block& b);
Block operator/(const Block& a, const Block& b);
Block operator+(const Block& a, double b);
Block operator-(const Block& a, double b);
Block operator*(const Block& a, double b);
Block operator/(const Block& a, double b);
Block operator+(double a, const Block& b);
Block operator-(double a, const Block& b);
Block operator*(double a, const Block& b);
Block operator/(double a, const Block& b);

Block max_of(const Block& a, const Block& b);
Block min_of(const Block& a, const Block& b);
Block ceil_of(const Block& a);
Block floor_of(const Block& a);
Block log2_of(const Block& a);

inline double max_of(double a, double b) { return std::fmax(a, b); }
inline double min_of(double a, double b) { return std::fmin(a, b); }
inline double ceil_of(double a) { return std::ceil(a); }
inline double floor_of(double a) { return std::floor(a); }
inline double log2_of(double a) { return std::log2(a); }

template <class V>
V constant(double value) {
  if constexpr (std::is_same_v<V, double>) {
    return value;
  } else {
    return V::constant(value);
  }
}

}  // namespace fomoe::costmodel
