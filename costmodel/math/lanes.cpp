#include "costmodel/math/lanes.hpp"

#include <Eigen/Core>

namespace fomoe::costmodel {

namespace {

// Eigen's fixed-size arrays compile to vector instructions for each operator.
using Lanes = Eigen::Array<double, static_cast<int>(Block::kLanes), 1>;
Eigen::Map<const Lanes, Eigen::Aligned16> lanes(const Block& block) {
  return Eigen::Map<const Lanes, Eigen::Aligned16>(block.data());
}
Eigen::Map<Lanes, Eigen::Aligned16> lanes(Block& block) {
  return Eigen::Map<Lanes, Eigen::Aligned16>(block.data());
}
template <class Expression>
Block evaluated(const Expression& expression) {
  Block result;
  lanes(result) = expression;
  return result;
}

}  // namespace

Block Block::constant(double value) { return evaluated(Lanes::Constant(value)); }

#define FOMOE_OPERATOR(OP)                                                                      \
  Block& Block::operator OP##=(const Block& other) {                                            \
    lanes(*this) OP## = lanes(other);                                                           \
    return *this;                                                                               \
  }                                                                                             \
  Block& Block::operator OP##=(double value) {                                                  \
    lanes(*this) OP## = Lanes::Constant(value);                                                 \
    return *this;                                                                               \
  }                                                                                             \
  Block operator OP(const Block& a, const Block& b) { return evaluated(lanes(a) OP lanes(b)); } \
  Block operator OP(const Block& a, double b) { return evaluated(lanes(a) OP b); }              \
  Block operator OP(double a, const Block& b) { return evaluated(a OP lanes(b)); }
FOMOE_OPERATOR(+)
FOMOE_OPERATOR(-)
FOMOE_OPERATOR(*)
FOMOE_OPERATOR(/)
#undef FOMOE_OPERATOR

Block operator-(const Block& a) { return evaluated(-lanes(a)); }
Block max_of(const Block& a, const Block& b) { return evaluated(lanes(a).max(lanes(b))); }
Block min_of(const Block& a, const Block& b) { return evaluated(lanes(a).min(lanes(b))); }
Block ceil_of(const Block& a) { return evaluated(lanes(a).ceil()); }
Block floor_of(const Block& a) { return evaluated(lanes(a).floor()); }
Block log2_of(const Block& a) {
  return evaluated(lanes(a).unaryExpr([](double x) { return std::log2(x); }));
}

}  // namespace fomoe::costmodel
