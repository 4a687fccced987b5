// Validation of combinations of scenario keys.
#pragma once
#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// Rejects combinations of keys whose values are legal one by one. Throws InputError with the key and the
/// nearest legal values.
void check(const Scenario& scenario);

}  // namespace fomoe::costmodel
