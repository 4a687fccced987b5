// The base of the angles of the rotary position embedding (rope.hpp).
#pragma once

namespace fomoe::trainer {

inline constexpr double kRopeTheta = 10'000;  // the default, of the RoFormer paper

}  // namespace fomoe::trainer
