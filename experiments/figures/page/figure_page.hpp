// One page for each figure of the paper: what the paper says, what was computed here, and how to compute a
// point again.
#pragma once
#include <string>

#include "experiments/figures/figure.hpp"

namespace fomoe::figures {

/// The figure as Markdown: its claims with the paper's verdict and ours, assumptions, what differs, the
/// command for one point, and the rows (the first ones, if there are many).
std::string page_text(const Experiment& experiment, const Figure& figure, const Json& assumptions);

}  // namespace fomoe::figures
