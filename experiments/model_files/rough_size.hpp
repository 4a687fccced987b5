// An upper bound of a model's size, for shapes whose exact count might not fit 64 bits.
#pragma once
#include "costmodel/inputs/model_shape.hpp"

namespace fomoe::scenario {

inline constexpr double kMostModelParameters = 1e16;

/// At least as many parameters as the shape has, within a factor of about ten, in floating point. Needs heads
/// > 0 or an opaque shape.
double rough_parameters(const costmodel::ModelShape& shape);

}  // namespace fomoe::scenario
