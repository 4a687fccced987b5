// Paper, figure "Empirical Pareto frontiers comparing communication cost and computation cost against
// perplexity" (exp1): expert overlap O_e, placement and outer optimiser.
#include <algorithm>
#include <cmath>

#include "experiments/figures/trained/perplexity_figures.hpp"

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

bool moves(const Setting& s) { return s.placement == "random" && !s.others.contains(kReshuffle); }
bool drawn_once(const Setting& s) { return s.placement == "random" && s.others.contains(kReshuffle); }

// The paper does not say whether it evaluates the model with the experts of all sites or the sites' own ones.
Claim fixed_against_random(const Trained& trained, const std::string& outer, const std::string& name,
                           OfSeeds losses) {
  const bool of_sites = losses == &TrainedRuns::site_losses;
  return claim_above_zero(
      "fixed placement reaches a lower perplexity than random placement, " + name +
          (of_sites ? ", mean of the sites' own models" : ", model with the experts of all sites"),
      "perplexity with random placement over that with fixed placement",
      effect_of(trained,
                differences(trained,
                            [&](Setting s) -> std::optional<Setting> {
                              if (!moves(s) || s.outer != outer) return {};
                              s.placement = "fixed";
                              return s;
                            }),
                losses));
}

// The settings whose sites' own models were validated with the experts that they trained. In the rows of
// exp1, the experts of a random placement had moved once more, and nobody had trained with them.
Trained rows_of_sites(Assumptions& assume, const Trained& all) {
  if (!assume.text("rows", "").empty()) return all;
  Trained kept = trained_runs(assume, {"moving-experts", "more-seeds", "static-experts", "rotated-experts"});
  for (const auto& point : all) {
    if (!moves(point.first)) kept.insert_or_assign(point.first, point.second);
  }
  return kept;
}

// What separates the two placements: the owners of a fixed placement are the same blocks of sites in every
// layer, and those of a random one differ by layer, and change.
std::vector<Claim> claims_of_placement(const Trained& trained, const Trained& of_sites) {
  const auto fixed_of = [](Setting s) -> std::optional<Setting> {
    if (!drawn_once(s)) return {};
    s.placement = "fixed";
    s.others.erase(kReshuffle);
    return s;
  };
  const auto moving_of = [](Setting s) -> std::optional<Setting> {
    if (!drawn_once(s)) return {};
    s.others.erase(kReshuffle);
    return s;
  };
  const auto blocks_of = [](Setting s) -> std::optional<Setting> {
    if (s.placement != "rotated") return {};
    s.placement = "fixed";
    return s;
  };
  std::vector<Claim> claims = {
      fixed_against_random(of_sites, "local_adamw", "LocalAdamW", &TrainedRuns::site_losses),
      fixed_against_random(of_sites, "nesterov", "DiLoCo's outer step", &TrainedRuns::site_losses)};
  for (const OfSeeds losses : {&TrainedRuns::losses, &TrainedRuns::site_losses}) {
    const Trained& runs = losses == &TrainedRuns::losses ? trained : of_sites;
    const std::string which = losses == &TrainedRuns::losses ? ", model with the experts of all sites"
                                                             : ", mean of the sites' own models";
    claims.push_back(claim_above_zero(
        "fixed blocks of owners reach a lower perplexity than owners that are drawn once" + which,
        "perplexity with owners drawn once over that with fixed blocks",
        effect_of(runs, differences(runs, fixed_of), losses)));
    claims.push_back(claim_above_zero(
        "the same blocks of owners in every layer reach a lower perplexity than blocks that begin at another "
        "site in each layer" +
            which,
        "perplexity with rotated blocks over that with fixed blocks",
        effect_of(runs, differences(runs, blocks_of), losses)));
    for (const auto& [outer, name] :
         {std::pair("local_adamw", ", LocalAdamW"), {"nesterov", ", DiLoCo's outer step"}}) {
      const auto moving = [&, outer = outer](const Setting& s) {
        return s.outer == outer ? moving_of(s) : std::nullopt;
      };
      claims.push_back(claim_above_zero(
          std::string("experts that move reach a lower perplexity than owners that are drawn once") + name +
              which,
          "perplexity with owners drawn once over that with experts that move",
          effect_of(runs, differences(runs, moving), losses)));
    }
  }
  return claims;
}

constexpr double kKept = 0.95;  // of that share, so that the routers count as even

// With as few experts at a site as a token uses, its routers have no choice. With skip-token, they choose
// among all experts, and lose what they send to experts elsewhere.
Claim routers_stay_even(const Trained& trained, bool skip_token) {
  Comparisons list;
  for (const auto& [partial, runs] : trained) {
    const double held = static_cast<double>(partial.experts) * partial.overlap / partial.sites;
    if (!is_federated(partial) || partial.full_replica() || partial.skip_token != skip_token) continue;
    if (!skip_token && held <= kActive) continue;
    Setting full = *with_overlap(partial, partial.sites);
    full.skip_token = false;
    if (trained.contains(full)) list.push_back(difference(partial, full));
  }
  return claim_above(
      std::string("the routers of partial replicas ") +
          (skip_token ? "with skip-token" : "whose sites hold more experts than a token uses") +
          " do not collapse: they use their experts at least 95 % as evenly as those of full replicas",
      "entropy of the routers between the least and the largest possible one, over that of full replicas",
      effect_of(trained, list, &TrainedRuns::evenness), std::log(kKept));
}

// Experts with all owners, or with the same owners for ever.
bool owners_stay(const Setting& s) { return s.full_replica() || s.placement == "fixed"; }

// What the paper concludes: partial replicas shift the frontier of perplexity over bytes, and random
// placement does not.
std::vector<Claim> claims_of_frontier(const Trained& all) {
  Trained trained;
  for (const auto& point : all) {
    const Setting& s = point.first;
    const bool compared = is_federated(s) || s.outer == "ddp";
    if (compared && !s.skip_token && (owners_stay(s) || moves(s))) trained.insert(point);
  }
  const auto on = [&](const std::function<bool(const Setting&)>& wanted) {
    return [frontier = frontier_of(trained, wanted, &TrainedRuns::bytes_per_site)](const Setting& s) {
      return std::find(frontier.begin(), frontier.end(), s) != frontier.end();
    };
  };
  const auto best_within = [&](const std::function<bool(const Setting&)>& of,
                               const std::function<bool(const Setting&)>& among) {
    const auto alike = [&](const Setting& s, const Setting& other) {
      return among(other) && s.sites == other.sites;
    };
    return against_best_within(trained, on(of), alike, &TrainedRuns::bytes_per_site);
  };
  const auto full = [](const Setting& s) { return s.full_replica(); };
  const auto partial = [](const Setting& s) { return !s.full_replica(); };
  const std::string which = " (any outer optimiser and K)";
  return {claim_above_zero(
              "within the bytes of full replicas on their frontier, the best partial replicas reach a lower "
              "perplexity" +
                  which,
              "perplexity of full replicas over that of the best partial ones that send at most as much",
              effect_of(trained, best_within(full, partial))),
          claim_above_zero(
              "within the bytes of partial replicas on their frontier, the best full replicas reach a higher "
              "perplexity" +
                  which,
              "perplexity of the best full replicas that send at most as much over that of partial ones",
              effect_of(trained, negated(best_within(partial, full)))),
          claim_above_zero(
              "random placement does not shift the frontier of perplexity over bytes: within the bytes "
              "of full replicas and fixed placements on it, the best random ones reach a higher perplexity",
              "perplexity of the best random placement that sends at most as much over that on the frontier",
              effect_of(trained, negated(best_within(owners_stay, moves)))),
          claim_above_zero(
              "within the bytes of random placements on their frontier, the best full replicas and fixed "
              "placements reach a lower perplexity",
              "perplexity of random placements over that of the best others that send at most as much",
              effect_of(trained, best_within(moves, owners_stay)))};
}

// The setting that gives the paper's headline, 1.42 times fewer bytes (fig-headline).
Claim headline_keeps_perplexity(const Trained& trained) {
  constexpr int kSites = 4, kOverlap = 2;
  constexpr std::int64_t kLocalSteps = 32;
  constexpr double kSame = 1.02;
  return claim_at_most(
      "the setting that sends 1.42 times fewer bytes (M = 4, O_e = 2, random placement, LocalAdamW, K = 32) "
      "keeps "
      "the perplexity of full replicas to 2 %",
      "perplexity of partial replicas over that of full ones",
      effect_of(trained, differences(trained,
                                     [](const Setting& s) -> std::optional<Setting> {
                                       if (s.sites != kSites || s.overlap != kOverlap || !moves(s) ||
                                           s.outer != "local_adamw" || s.local_steps != kLocalSteps ||
                                           s.skip_token)
                                         return {};
                                       return with_overlap(s, kSites);
                                     })),
      std::log(kSame));
}

std::vector<Claim> claims_of_overlap(const Trained& trained) {
  const auto full = [](const Setting& s) { return s.outer == "local_adamw" && s.full_replica(); };
  const auto partial = [](const Setting& s, const Setting& other) {
    return other.outer == s.outer && !other.full_replica() && other.sites == s.sites;
  };
  const auto partial_replica = [](const Setting& s) { return s.outer == "local_adamw" && !s.full_replica(); };
  const auto as_many_sites = [](const Setting& s, const Setting& other) { return s.sites == other.sites; };
  // FLOPs do not depend on K, so a smaller K would win for free.
  const auto partial_of_same_steps = [&](const Setting& s, const Setting& other) {
    return partial(s, other) && other.local_steps == s.local_steps;
  };
  std::vector<Claim> claims = {
      claim_above_zero("LocalAdamW reaches a lower perplexity than DiLoCo's outer step with partial replicas",
                       "perplexity with Nesterov over that with LocalAdamW",
                       effect_of(trained, differences(trained,
                                                      [](Setting s) -> std::optional<Setting> {
                                                        if (s.outer != "nesterov" || s.full_replica())
                                                          return {};
                                                        s.outer = "local_adamw";
                                                        return s;
                                                      }))),
      fixed_against_random(trained, "local_adamw", "LocalAdamW", &TrainedRuns::losses),
      fixed_against_random(trained, "nesterov", "DiLoCo's outer step", &TrainedRuns::losses),
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
          "partial replicas beat full replicas within the same FLOPs (LocalAdamW, same K)",
          "perplexity of full replicas over that of the best partial replicas with at most as many FLOPs",
          effect_of(trained, against_best_within(trained, full, partial_of_same_steps, &TrainedRuns::flops))),
      headline_keeps_perplexity(trained)};
  for (const std::vector<Claim>& more :
       {within_same_bytes(trained, {"partial replicas", "full replicas", partial_replica, full, as_many_sites,
                                    " (LocalAdamW, any K)"}),
        claims_of_frontier(trained)})
    claims.insert(claims.end(), more.begin(), more.end());
  return claims;
}

}  // namespace

Figure expert_overlap(Assumptions& assume) {
  Figure figure;
  figure.columns = point_columns();
  const Trained paper = paper_runs(assume, PaperRows::merged),
                proxy = trained_runs(
                    assume, {"moving-experts", "exp1", "more-seeds", "static-experts", "rotated-experts"});
  const auto all = [](const Setting&) { return true; };
  figure.rows = point_rows(paper_runs(assume, PaperRows::exp1), "paper", all);
  const auto ours = point_rows(proxy, "proxy", all);
  figure.rows.insert(figure.rows.end(), ours.begin(), ours.end());
  add_claims(figure, "paper", by_sign(paper, claims_of_overlap));
  std::vector<Claim> claims = claims_of_overlap(proxy);
  for (Claim& claim : claims_of_placement(proxy, rows_of_sites(assume, proxy)))
    claims.push_back(std::move(claim));
  claims.push_back(routers_stay_even(proxy, false));
  claims.push_back(routers_stay_even(trained_runs(assume, {"exp1", "skip-token"}), true));
  add_claims(figure, "proxy", claims);
  state_proxy(assume);
  figure.again = trained_again("--set strategy.expert_overlap=2 --set strategy.placement=random");
  figure.notes = {
      "In the paper's model, experts are 3.9 % of the parameters, so that the overlap changes few "
      "bytes; in the proxy they are 79 %.",
      "The paper's perplexities are printed values of one model each; bytes and FLOPs are computed here."};
  return figure;
}

}  // namespace fomoe::figures
