// The published losses of local-update training, experiments/data/published_quality.csv, which are compiled
// into the program.
#pragma once
#include <memory>

#include "costmodel/published/losses.hpp"

namespace fomoe::scenario {

/// All rows and what follows from them, computed once.
const std::shared_ptr<const costmodel::PublishedLosses>& published_losses();

}  // namespace fomoe::scenario
