// Statements of the paper's text on how to train, which it gives no figure: the state of the inner optimiser,
// the server's momentum, the overlap of about 4, and the warm-up of models with more experts.
#include <algorithm>

#include "experiments/figures/trained/perplexity_figures.hpp"

namespace fomoe::figures {
namespace {

constexpr const char *kMoments = "trainer.inner_moments", *kWarmUp = "trainer.warmup_steps";

Claim keeping_moments(const Trained& trained) {
  return claim_above_zero(
      "sites that keep the moments of their AdamW reach a lower perplexity than sites that forget them in "
      "each round, with DiLoCo's outer step",
      "perplexity with forgotten moments over that with kept ones",
      effect_of(trained, differences(trained, [](Setting s) -> std::optional<Setting> {
                  if (s.others.erase(kMoments) == 0) return {};
                  return s;
                })));
}

// local_sgd averages the sites' parameters, and has no outer optimiser.
Claim momentum_of_server(const Trained& trained, std::int64_t local_steps) {
  return claim_above_zero(
      "DiLoCo's outer step with momentum reaches a lower perplexity than the plain average of the sites, K "
      "= " +
          std::to_string(local_steps),
      "perplexity with the plain average over that with the outer step",
      effect_of(trained, differences(trained, [&](Setting s) -> std::optional<Setting> {
                  if (s.outer != "local_sgd" || s.local_steps != local_steps) return {};
                  s.outer = "nesterov";
                  return s;
                })));
}

constexpr int kSites = 8, kBestOverlap = 4;

bool of_eight(const Setting& s) {
  return s.sites == kSites && (s.outer == "nesterov" || s.outer == "local_adamw") && !s.skip_token;
}

bool alike(const Setting& a, const Setting& b) {
  return a.outer == b.outer && (a.full_replica() || b.full_replica() || a.placement == b.placement);
}

// Who sets the budget of bytes matters: the best of the others may then send much less, or O_e = 4 may.
std::vector<Claim> claims_of_overlap_4(const Trained& trained) {
  const auto four = [](const Setting& s) { return of_eight(s) && s.overlap == kBestOverlap; };
  const auto other = [](const Setting& s) { return of_eight(s) && s.overlap != kBestOverlap; };
  Comparisons within_four = against_best_within(
      trained, four, [&](const Setting& s, const Setting& o) { return other(o) && alike(s, o); },
      &TrainedRuns::bytes_per_site);
  for (std::vector<Term>& terms : within_four) {
    for (Term& term : terms) term.second = -term.second;
  }
  const Comparisons within_other = against_best_within(
      trained, other, [&](const Setting& s, const Setting& o) { return four(o) && alike(s, o); },
      &TrainedRuns::bytes_per_site);
  return {
      claim_above_zero(
          "O_e = 4 of 8 sites reaches a lower perplexity than any other overlap that sends at most as much",
          "perplexity of the best other overlap over that with O_e = 4", effect_of(trained, within_four)),
      claim_above_zero(
          "each other overlap has a higher perplexity than O_e = 4 of 8 sites that sends at most as much",
          "perplexity of the other overlap over that of the best run with O_e = 4",
          effect_of(trained, within_other))};
}

// The values of warm-up.toml.
constexpr std::int64_t kFew = 8, kMany = 64;
constexpr const char *kShort = "8", *kLong = "40";

// [loss(many, short) − loss(many, long)] − [loss(few, short) − loss(few, long)], at each learning rate.
Claim longer_warm_up(const Trained& trained) {
  Comparisons list;
  for (const auto& [setting, runs] : trained) {
    const auto length = setting.others.find(kWarmUp);
    if (setting.experts != kMany || length == setting.others.end() || length->second != kShort) continue;
    const auto with = [&](std::int64_t experts, const char* warm_up) {
      Setting other = setting;
      other.experts = experts;
      other.others[kWarmUp] = warm_up;
      return other;
    };
    const std::vector<Term> terms = {
        {setting, 1}, {with(kMany, kLong), -1}, {with(kFew, kShort), -1}, {with(kFew, kLong), 1}};
    const auto there = [&](const Term& term) { return trained.contains(term.first); };
    if (std::all_of(terms.begin(), terms.end(), there)) list.push_back(terms);
  }
  return claim_above_zero(
      "a model with eight times as many experts gains more from a five times longer warm-up",
      "perplexity with the short warm-up over that with the long one, of many experts over that of few",
      effect_of(trained, list));
}

}  // namespace

Figure training_choices(Assumptions& assume) {
  Figure figure;
  figure.columns = point_columns();
  const Trained paper = paper_runs(assume, PaperRows::merged);
  const Trained full = trained_runs(assume, {"moving-experts", "exp1", "more-seeds"}),
                moments = trained_runs(assume, {"exp1", "stateless"}),
                momentum = trained_runs(assume, {"exp1", "server-momentum"}),
                warm_up = trained_runs(assume, {"warm-up"});
  const auto add = [&](const Trained& trained, const std::string& series,
                       const std::function<bool(const Setting&)>& wanted) {
    const auto rows = point_rows(trained, series, wanted);
    figure.rows.insert(figure.rows.end(), rows.begin(), rows.end());
  };
  add(moments, "forgotten moments", [](const Setting& s) { return s.others.contains(kMoments); });
  add(momentum, "plain average", [](const Setting& s) { return s.outer == "local_sgd"; });
  for (const auto& [setting, runs] : warm_up) {
    const auto only = [&](const Setting& s) { return s == setting; };
    add(warm_up,
        "warm-up of " + setting.others.at(kWarmUp) + " steps, learning rate " +
            setting.others.at("trainer.learning_rate"),
        only);
  }
  add_claims(figure, "paper", by_sign(paper, claims_of_overlap_4));
  std::vector<Claim> claims = {keeping_moments(moments), momentum_of_server(momentum, 32),
                               momentum_of_server(momentum, 128), longer_warm_up(warm_up)};
  for (Claim& claim : claims_of_overlap_4(full)) claims.push_back(std::move(claim));
  add_claims(figure, "proxy", claims);
  state_proxy(assume);
  figure.again = trained_again(
      "--set strategy.method=diloco --set strategy.outer_optimizer=nesterov --set "
      "trainer.inner_moments=restart");
  figure.notes = {"The points with kept moments and with the outer step are those of fig-exp1 and fig-exp0.",
                  "The runs with two warm-ups are centralised, of 0.66 M tokens in 160 steps.",
                  "The plain average is local_sgd: AdamW at the sites, and no outer optimiser."};
  return figure;
}

}  // namespace fomoe::figures
