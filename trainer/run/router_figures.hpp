// How evenly the routers of a model use its experts.
#pragma once
#include <vector>

#include "trainer/model/model.hpp"

namespace fomoe::trainer {

/// Figures of one layer's router, over a number of tokens.
struct RouterFigures {
  double entropy = 0;  // of the experts' shares of the slots, in nats; at most the logarithm of their number
  double load_cv = 0;  // standard deviation of the experts' loads ÷ their mean
  double ghost_share = 0;  // share of the slots that chose experts that the site does not hold
};

/// By layer. The experts are those that the router scores: all with skip-token, otherwise those that the site
/// holds.
std::vector<RouterFigures> router_figures(const Routing& routing, const ExpertChoice& held);

/// Adds the number of slots that chose each expert, by layer and expert id. A router of partial replicas
/// without skip-token has columns of local experts only.
void add_choices(std::vector<std::vector<std::int64_t>>& choices, const Routing& routing,
                 const costmodel::ModelShape& shape, const ExpertChoice& held);

}  // namespace fomoe::trainer
