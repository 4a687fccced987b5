// Skip-token with measured routing: which part of a site's routed tokens have their expert at the site.
#pragma once
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

/// Whether routing counts say how many tokens each site skips: with skip-token, counts, and owners that stay
/// the same. A placement that is drawn again and again meets each expert equally often.
bool counts_skipped_tokens(const Strategy& strategy, const ExpertShares& shares);

/// Whether sites do the work of unequally many experts: they hold unequally many, or skip unequally many
/// tokens.
bool expert_work_differs(const Strategy& strategy, const ExpertShares& shares);

/// By site, the share of the tokens routed there whose expert the site holds, by the counts. It takes the
/// place of N_le/N_e, the share with routers that choose all experts equally often (FoMoE paper,
/// section 3.1). Empty unless counts_skipped_tokens(). A site without counts has N_le/N_e.
std::vector<double> local_token_shares(const Strategy& strategy, const ExpertShares& shares);

/// Experts of a layer whose work a site does, mean over the layers: those that it holds, or, with
/// local_token_shares(), as many as have that share of the tokens if routers choose all equally often.
double used_experts(const ExpertShares& shares, const std::vector<double>& local_token_shares, int site);

}  // namespace fomoe::costmodel
