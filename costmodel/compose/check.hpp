// What a scenario's keys may not say together.
#pragma once
#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// Refuses combinations that no single key shows: throws InputError naming the key and the nearest legal
/// values.
void check(const Scenario& scenario);

}  // namespace fomoe::costmodel
