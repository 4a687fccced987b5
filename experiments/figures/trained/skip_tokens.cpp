// Paper, figure "Impact of skip-token and ghost experts on the perplexity versus FLOPs Pareto frontier".
#include <algorithm>

#include "experiments/figures/trained/perplexity_figures.hpp"

namespace fomoe::figures {

Figure skip_tokens(Assumptions& assume) {
  Figure figure;
  figure.columns = point_columns();
  const Trained proxy = trained_runs(assume, {"exp1", "skip-token"});
  const double tolerance = assume.number("tolerance_nats", 0.02, 0, 10);
  Trained alike;  // the settings of the runs with skip-token, with and without it, and full replicas
  for (const auto& point : proxy) {
    const bool has_partner = std::any_of(proxy.begin(), proxy.end(), [&](const auto& other) {
      const Setting &a = point.first, &b = other.first;
      return b.skip_token && a.outer == b.outer && a.sites == b.sites && a.local_steps == b.local_steps;
    });
    if (has_partner) alike.insert(point);
  }
  figure.rows = point_rows(alike, "proxy", [](const Setting&) { return true; });
  const auto cost_with = [&](const std::string& outer, const std::string& name) {
    return claim_at_most(
        "skip-token costs at most the tolerated perplexity at the same overlap and placement, " + name,
        "perplexity with skip-token over that without",
        effect_of(alike, differences(alike,
                                     [&](Setting s) -> std::optional<Setting> {
                                       if (!s.skip_token || s.outer != outer) return {};
                                       s.skip_token = false;
                                       return s;
                                     })),
        tolerance);
  };
  add_claims(
      figure, "proxy",
      {cost_with("local_adamw", "LocalAdamW"), cost_with("nesterov", "DiLoCo's outer step"),
       claim_above_zero(
           "runs with skip-token beat full replicas within the same FLOPs",
           "perplexity of full replicas over that of the best run with skip-token with at most as many FLOPs",
           effect_of(alike, against_best_within(
                                alike, [](const Setting& s) { return s.full_replica() && !s.skip_token; },
                                [](const Setting& s, const Setting& other) {
                                  return other.skip_token && other.outer == s.outer &&
                                         other.sites == s.sites && other.local_steps == s.local_steps;
                                },
                                &TrainedRuns::flops))),
       claim_above_zero(
           "runs with skip-token, of any O_e, beat partial replicas without it within the same FLOPs",
           "perplexity of partial replicas over that of the best run with skip-token with at most as many "
           "FLOPs",
           effect_of(alike, against_best_within(
                                alike, [](const Setting& s) { return !s.full_replica() && !s.skip_token; },
                                [](const Setting& s, const Setting& other) {
                                  return other.skip_token && other.outer == s.outer &&
                                         other.sites == s.sites && other.local_steps == s.local_steps;
                                },
                                &TrainedRuns::flops)))});
  state_proxy(assume);
  figure.again = trained_again("--set strategy.skip_token=true --set strategy.expert_overlap=2");
  figure.notes = {
      "Without skip-token, a router scores the experts of its site only, and always uses min(k, N_le) of "
      "them. With skip-token, it scores all, and what it would send to experts elsewhere is dropped.",
      "The paper prints no numbers for this figure, so there is no series of the paper.",
      "router_entropy (in nats), load_cv and ghost_share are means over sites and layers, on the validation "
      "sequences; a router that uses all experts equally would have a ghost share of 1 − O_e/M."};
  return figure;
}

}  // namespace fomoe::figures
