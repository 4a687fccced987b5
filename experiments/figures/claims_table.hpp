// All claims of several figures in one table: what the paper's printed figures say, and what our runs say.
#pragma once
#include <vector>

#include "experiments/figures/figure.hpp"

namespace fomoe::figures {

/// One row for each claim of the figures' findings, in their order. A claim that is made of the paper's
/// printed means and of our runs has one row. Effects and intervals of 95 % are in per cent; the seeds are
/// the fewest of a setting that was compared. Cells that are not known are empty.
Figure claims_table(const std::vector<Figure>& figures, const std::vector<std::string_view>& ids);

/// The table for people: the verdicts in columns, and the claim last.
std::string claims_text(const Figure& table);

}  // namespace fomoe::figures
