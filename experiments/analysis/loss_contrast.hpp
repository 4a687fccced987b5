// Differences of loss between compared cases by published runs: what all cases have in common cancels.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/analysis/verdict.hpp"

namespace fomoe::commands {

/// The loss of `other` above that of `base`, for the same model and tokens; empty if one of them did not ask
/// published runs.
std::optional<costmodel::LossEstimate> loss_contrast(const costmodel::RunReport& base,
                                                     const costmodel::RunReport& other);

/// "= +0.47 ± 1.23 %, P(higher) 0.64, 2 studies"; "=" stands where 0 lies inside of the 80 % interval. Or
/// "unknown" with the reasons.
std::string contrast_text(const costmodel::LossEstimate& contrast);

/// A table of the loss of each case against that of the first; empty if the cases did not ask published runs.
std::string contrast_table(const std::vector<Case>& cases);

}  // namespace fomoe::commands
