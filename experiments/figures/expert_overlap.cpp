// Paper, figure "Empirical Pareto frontiers comparing communication cost and computation cost against
// perplexity" (exp1): expert overlap O_e, placement and outer optimiser.
#include "experiments/figures/perplexity_figures.hpp"

namespace fomoe::figures {
namespace {

bool is_federated(const Setting& s) { return s.outer == "nesterov" || s.outer == "local_adamw"; }

std::optional<Setting> with_overlap(Setting s, int overlap) {
  s.overlap = overlap;
  if (s.full_replica()) s.placement.clear();
  return s;
}

// ½·loss(O_e = 1) + ½·loss(M) − loss(M/2): above 0 if half of the experts close more than half of the gap.
Comparisons halves(const Trained& trained) {
  Comparisons list;
  for (const auto& [one, runs] : trained) {
    if (!is_federated(one) || one.overlap != 1 || one.sites < 4) continue;
    const Setting half = *with_overlap(one, one.sites / 2), full = *with_overlap(one, one.sites);
    if (trained.contains(half) && trained.contains(full))
      list.push_back({{one, 0.5}, {full, 0.5}, {half, -1}});
  }
  return list;
}

std::vector<Claim> claims_of_overlap(const Trained& trained) {
  const auto full = [](const Setting& s) { return s.outer == "local_adamw" && s.full_replica(); };
  const auto partial = [](const Setting& s, const Setting& other) {
    return other.outer == s.outer && !other.full_replica() && other.sites == s.sites;
  };
  // FLOPs do not depend on K, so a smaller K would win for free.
  const auto partial_of_same_steps = [&](const Setting& s, const Setting& other) {
    return partial(s, other) && other.local_steps == s.local_steps;
  };
  return {
      claim_above_zero("LocalAdamW reaches a lower perplexity than DiLoCo's outer step with partial replicas",
                       "perplexity with Nesterov over that with LocalAdamW",
                       effect_of(trained, differences(trained,
                                                      [](Setting s) -> std::optional<Setting> {
                                                        if (s.outer != "nesterov" || s.full_replica())
                                                          return {};
                                                        s.outer = "local_adamw";
                                                        return s;
                                                      }))),
      claim_above_zero("fixed placement reaches a lower perplexity than random placement",
                       "perplexity with random placement over that with fixed placement",
                       effect_of(trained, differences(trained,
                                                      [](Setting s) -> std::optional<Setting> {
                                                        if (s.placement != "random") return {};
                                                        s.placement = "fixed";
                                                        return s;
                                                      }))),
      claim_above_zero("a smaller overlap has a higher perplexity",
                       "perplexity with O_e over that with 2·O_e",
                       effect_of(trained, differences(trained,
                                                      [](const Setting& s) -> std::optional<Setting> {
                                                        if (!is_federated(s) || s.full_replica()) return {};
                                                        return with_overlap(s, 2 * s.overlap);
                                                      }))),
      claim_above_zero(
          "towards O_e = M the perplexity converges: half of the overlap closes more than half of the gap",
          "geometric mean of the perplexities with O_e = 1 and M over that with M/2",
          effect_of(trained, halves(trained))),
      claim_above_zero(
          "partial replicas beat full replicas within the same bytes (LocalAdamW, any K)",
          "perplexity of full replicas over that of the best partial replicas that send at most as much",
          effect_of(trained, against_best_within(trained, full, partial, &TrainedRuns::bytes_per_site))),
      claim_above_zero(
          "partial replicas beat full replicas within the same FLOPs (LocalAdamW, same K)",
          "perplexity of full replicas over that of the best partial replicas with at most as many FLOPs",
          effect_of(trained, against_best_within(trained, full, partial_of_same_steps, &TrainedRuns::flops))),
  };
}

}  // namespace

Figure expert_overlap(Assumptions& assume) {
  Figure figure;
  figure.columns = point_columns();
  const Trained paper = paper_runs(assume, PaperRows::merged), proxy = trained_runs(assume, {"exp1"});
  const auto all = [](const Setting&) { return true; };
  figure.rows = point_rows(paper_runs(assume, PaperRows::exp1), "paper", all);
  const auto ours = point_rows(proxy, "proxy", all);
  figure.rows.insert(figure.rows.end(), ours.begin(), ours.end());
  add_claims(figure, "paper", by_sign(claims_of_overlap(paper)));
  add_claims(figure, "proxy", claims_of_overlap(proxy));
  state_proxy(assume);
  figure.notes = {
      "In the paper's model, experts are 3.9 % of the parameters, so that the overlap changes few "
      "bytes; in the proxy they are 79 %.",
      "The paper's perplexities are printed values of one model each; bytes and FLOPs are computed here."};
  return figure;
}

}  // namespace fomoe::figures
