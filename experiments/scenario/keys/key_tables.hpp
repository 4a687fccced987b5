// The parts of the table of scenario keys, each in one file.
#pragma once
#include "experiments/scenario/keys/keys.hpp"

namespace fomoe::scenario {

inline constexpr double kMaxSites = 16384, kMaxGpus = 1e5;

std::span<const Key> training_keys();
std::span<const Key> site_keys();
std::span<const Key> run_keys();

}  // namespace fomoe::scenario
