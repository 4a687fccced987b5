// Statements of the paper's text on how to train, which it gives no figure: the state of the inner optimiser,
// the server's momentum, the overlap of about 4, the warm-up of models with more experts, and placements
// where sites have different data.
#include <algorithm>
#include <cmath>

#include "experiments/figures/trained/perplexity_figures.hpp"

namespace fomoe::figures {
namespace {

constexpr const char *kMoments = "trainer.inner_moments", *kWarmUp = "trainer.warmup_steps",
                     *kSplit = "trainer.data_split", *kCounts = "strategy.routing_counts";

// The paper says that forgotten moments diverge. Means of other settings do not tell how much these scatter,
// so that each K has its own spread.
std::vector<Claim> forgotten_moments(const Trained& all, std::int64_t local_steps) {
  Trained trained;
  const auto kept = [](Setting s) -> std::optional<Setting> {
    if (s.others.erase(kMoments) == 0) return {};
    return s;
  };
  for (const auto& [setting, runs] : all) {
    const std::optional<Setting> partner = kept(setting);
    if (!partner || setting.local_steps != local_steps || !all.contains(*partner)) continue;
    trained.emplace(setting, runs);
    trained.emplace(*partner, all.at(*partner));
  }
  const Effect effect = effect_of(trained, differences(trained, kept));
  const std::string at = ", K = " + std::to_string(local_steps),
                    measure = "perplexity with forgotten moments over that with kept ones";
  return {
      claim_above_zero(
          "sites that forget the moments of their AdamW in each round reach a higher perplexity than sites "
          "that keep them, with DiLoCo's outer step" +
              at,
          measure, effect),
      claim_above("they diverge, to more than twice the perplexity of sites that keep the moments" + at,
                  measure, effect, std::log(2.0))};
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

std::vector<Claim> claims_of_overlap_4(const Trained& trained) {
  return within_same_bytes(
      trained, {"runs with O_e = 4 of 8 sites", "runs with other overlaps",
                [](const Setting& s) { return of_eight(s) && s.overlap == kBestOverlap; },
                [](const Setting& s) { return of_eight(s) && s.overlap != kBestOverlap; }, alike});
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

// Each site trains on one domain. The paper expects that random placement may then win, and did not train
// that.
std::vector<Claim> claims_of_domains(const Trained& trained) {
  const auto random_of = [](const char* placement) {
    return [placement](Setting s) -> std::optional<Setting> {
      if (!s.others.contains(kSplit) || s.placement != placement) return {};
      s.placement = "random";
      s.others.erase(kCounts);
      return s;
    };
  };
  const auto full_of = [](Setting s) -> std::optional<Setting> {
    if (!s.others.contains(kSplit) || s.placement != "random" || s.skip_token) return {};
    s.overlap = s.sites;
    s.placement.clear();
    return s;
  };
  const std::string where = "with a domain of its own at each site, ";
  return {claim_above_zero(where + "random placement reaches a lower perplexity than fixed placement",
                           "perplexity with fixed placement over that with random placement",
                           effect_of(trained, differences(trained, random_of("fixed")))),
          claim_above_zero(where + "random placement reaches a lower perplexity than affinity placement",
                           "perplexity with affinity placement over that with random placement",
                           effect_of(trained, differences(trained, random_of("affinity")))),
          claim_above_zero(where + "full replicas reach a lower perplexity than random placement",
                           "perplexity with random placement over that of full replicas",
                           effect_of(trained, differences(trained, full_of)))};
}

}  // namespace

Figure training_choices(Assumptions& assume) {
  Figure figure;
  figure.columns = point_columns();
  const Trained paper = paper_runs(assume, PaperRows::merged);
  const Trained full = trained_runs(assume, {"moving-experts", "exp1", "more-seeds"}),
                moments = trained_runs(assume, {"exp1", "stateless"}),
                momentum = trained_runs(assume, {"exp1", "server-momentum"}),
                warm_up = trained_runs(assume, {"warm-up"}), domains = trained_runs(assume, {"domains"});
  const auto add = [&](const Trained& trained, const std::string& series,
                       const std::function<bool(const Setting&)>& wanted) {
    const auto rows = point_rows(trained, series, wanted);
    figure.rows.insert(figure.rows.end(), rows.begin(), rows.end());
  };
  add(moments, "forgotten moments", [](const Setting& s) { return s.others.contains(kMoments); });
  add(domains, "a domain at each site", [](const Setting& s) { return s.others.contains(kSplit); });
  add(momentum, "plain average", [](const Setting& s) { return s.outer == "local_sgd"; });
  for (const auto& [setting, runs] : warm_up) {
    const auto only = [&](const Setting& s) { return s == setting; };
    add(warm_up,
        "warm-up of " + setting.others.at(kWarmUp) + " steps, learning rate " +
            setting.others.at("trainer.learning_rate"),
        only);
  }
  add_claims(figure, "paper", by_sign(paper, claims_of_overlap_4));
  std::vector<Claim> claims = {momentum_of_server(momentum, 32), momentum_of_server(momentum, 128),
                               longer_warm_up(warm_up)};
  for (const std::vector<Claim>& more : {forgotten_moments(moments, 32), forgotten_moments(moments, 8),
                                         claims_of_overlap_4(full), claims_of_domains(domains)})
    claims.insert(claims.end(), more.begin(), more.end());
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
