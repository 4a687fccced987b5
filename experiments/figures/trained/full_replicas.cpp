// Paper, figure "Pareto frontier of communication costs versus perplexity for full-replica baselines" (exp0):
// the outer optimisers, K and M with full replicas; and dense models beside mixtures of experts.
#include "experiments/figures/trained/perplexity_figures.hpp"

namespace fomoe::figures {
namespace {

bool is_dense(const Setting& setting) { return setting.experts == 1; }

std::vector<Claim> claims_of_full_replicas(const Trained& all) {
  Trained trained;  // full replicas of the mixture of experts
  for (const auto& point : all) {
    if (point.first.full_replica() && !is_dense(point.first)) trained.insert(point);
  }
  const auto outer = [](const Setting& s) { return s.outer == "nesterov" || s.outer == "local_adamw"; };
  std::vector<Claim> claims = {
      claim_above_zero("LocalAdamW reaches a lower perplexity than DiLoCo at the same K and M",
                       "perplexity with DiLoCo over that with LocalAdamW",
                       effect_of(trained, differences(trained,
                                                      [](Setting s) -> std::optional<Setting> {
                                                        if (s.outer != "nesterov") return {};
                                                        s.outer = "local_adamw";
                                                        return s;
                                                      }))),
      claim_above_zero("a larger K has a higher perplexity", "perplexity over that with the next smaller K",
                       effect_of(trained, differences(trained,
                                                      [&](const Setting& s) -> std::optional<Setting> {
                                                        if (!outer(s)) return {};
                                                        Setting best = s;
                                                        best.local_steps = 0;
                                                        for (const auto& [other, runs] : trained) {
                                                          Setting same = other;
                                                          same.local_steps = s.local_steps;
                                                          if (same == s &&
                                                              other.local_steps < s.local_steps &&
                                                              other.local_steps > best.local_steps)
                                                            best = other;
                                                        }
                                                        if (best.local_steps == 0) return {};
                                                        return best;
                                                      }))),
      claim_above_zero("more sites have a higher perplexity", "perplexity with 2M sites over that with M",
                       effect_of(trained, differences(trained,
                                                      [&](Setting s) -> std::optional<Setting> {
                                                        if (!outer(s)) return {};
                                                        s.sites /= 2;
                                                        s.overlap = s.sites;
                                                        return s;
                                                      }))),
  };
  const std::vector<Claim> within = within_same_bytes(
      trained, {"LocalAdamW runs", "DiLoCo runs", [](const Setting& s) { return s.outer == "local_adamw"; },
                [](const Setting& s) { return s.outer == "nesterov"; },
                [](const Setting& s, const Setting& other) { return s.sites == other.sites; }});
  claims.insert(claims.begin() + 1, within.begin(), within.end());
  return claims;
}

// Widths of the dense model's feed-forward block: of the 4 experts of width 64 that a token of the proxy
// uses, and of all 16.
constexpr const char *kActiveWidth = "256", *kTotalWidth = "1024";

// Pairs of a dense model of that width and a mixture of experts, trained alike.
Comparisons dense_against_experts(const Trained& all, const char* width, bool centralised) {
  Comparisons list;
  for (const auto& [dense, runs] : all) {
    if (!is_dense(dense) || (dense.outer == "centralised") != centralised) continue;
    const auto of = dense.others.find("model.d_expert");
    if (of == dense.others.end() || of->second != width) continue;
    for (const auto& [experts, other] : all) {
      Setting same = experts;
      same.experts = 1;
      same.others = dense.others;  // model.active_experts and model.d_expert
      if (!is_dense(experts) && same == dense) list.push_back(difference(dense, experts));
    }
  }
  return list;
}

}  // namespace

Figure full_replicas(Assumptions& assume) {
  Figure figure;
  figure.columns = point_columns();
  const auto wanted = [](const Setting& s) { return s.full_replica(); };
  const Trained paper = paper_runs(assume, PaperRows::exp0),
                proxy = trained_runs(assume, {"exp1", "dense", "dense-total"});
  figure.rows = point_rows(paper, "paper", wanted);
  const auto ours = point_rows(proxy, "proxy", wanted);
  figure.rows.insert(figure.rows.end(), ours.begin(), ours.end());
  add_claims(figure, "paper", by_sign(paper, claims_of_full_replicas));
  std::vector<Claim> claims = claims_of_full_replicas(proxy);
  const auto against_dense = [&](const char* sentence, const char* width, bool centralised) {
    claims.push_back(claim_above_zero(sentence, "perplexity of the dense model over that of the mixture",
                                      effect_of(proxy, dense_against_experts(proxy, width, centralised))));
  };
  // The paper compares models with as many parameters in total.
  against_dense(
      "a mixture of experts reaches a lower perplexity than a dense model with as many parameters, "
      "centralised",
      kTotalWidth, true);
  against_dense(
      "a mixture of experts reaches a lower perplexity than a dense model with as many parameters, "
      "across sites",
      kTotalWidth, false);
  against_dense(
      "a mixture of experts reaches a lower perplexity than a dense model with the same active "
      "parameters, centralised",
      kActiveWidth, true);
  against_dense("this gain survives training across sites", kActiveWidth, false);
  add_claims(figure, "proxy", claims);
  state_proxy(assume);
  figure.again = trained_again("--set strategy.method=local_adamw");
  figure.notes = {
      "The paper's perplexities are printed values of one model each; bytes and FLOPs are computed here.",
      "A dense model has one feed-forward block, as wide as the active experts together or as all experts. "
      "It "
      "keeps the expert's sigmoid gate, which is one more vector for each layer."};
  return figure;
}

}  // namespace fomoe::figures
