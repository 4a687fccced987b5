// Formulas are written once, as templates over V: `double` for one configuration, `Block` for a sweep, where
// each lane is a configuration. Branches on an axis must therefore be arithmetic (min, max, products with 0
// or 1).
#pragma once
#include <Eigen/Core>
#include <cmath>
#include <type_traits>

namespace fomoe::costmodel {

/// Configurations computed side by side: small enough to stay in the first-level cache, no allocation.
using Block = Eigen::Array<double, 64, 1>;

template <class V>
V constant(double value) {
  if constexpr (std::is_same_v<V, double>) {
    return value;
  } else {
    return V::Constant(value);
  }
}
inline double max_of(double a, double b) { return std::fmax(a, b); }
inline double min_of(double a, double b) { return std::fmin(a, b); }
inline double ceil_of(double a) { return std::ceil(a); }
inline double floor_of(double a) { return std::floor(a); }
inline double log2_of(double a) { return std::log2(a); }
inline Block max_of(const Block& a, const Block& b) { return a.max(b); }
inline Block min_of(const Block& a, const Block& b) { return a.min(b); }
inline Block ceil_of(const Block& a) { return a.ceil(); }
inline Block floor_of(const Block& a) { return a.floor(); }
inline Block log2_of(const Block& a) {
  return a.unaryExpr([](double x) { return std::log2(x); });
}

}  // namespace fomoe::costmodel
