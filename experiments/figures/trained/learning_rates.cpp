// Paper, figure on the transfer of the learning rate (fig-lr-transfer): the best rate is the same however the
// model is trained, and with CompleteP, that of a small model is also that of a wider or deeper one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "costmodel/math/pooled_spread.hpp"
#include "costmodel/math/replicas.hpp"
#include "experiments/figures/trained/perplexity_figures.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::figures {
namespace {

double rate_of(const Setting& setting) {
  return parse_number<double>(setting.others.at("trainer.learning_rate")).value();
}

bool scaled(const Setting& setting) {
  const auto found = setting.others.find("trainer.rate_transfer");
  return found == setting.others.end() || found->second == "complete_p";
}

// The tested learning rates, ascending, with their runs.
using Curve = std::vector<std::pair<double, const TrainedRuns*>>;

/// What distinguishes two curves.
struct Key {
  std::int64_t d_model = 0, layers = 0;
  std::string way;  // how the model is trained
  friend auto operator<=>(const Key&, const Key&) = default;
};
using Curves = std::map<Key, Curve>;

constexpr const char* kCentralised = "centralised";

std::string way_of(const Setting& s) {
  std::string way = s.outer == "nesterov" ? "DiLoCo" : s.outer == "local_adamw" ? "LocalAdamW" : s.outer;
  if (s.outer != kCentralised) way += fmt::format(" K = {}", s.local_steps);
  if (!s.full_replica()) way += fmt::format(" O_e = {}", s.overlap);
  return way + (s.experts == 1 ? ", dense" : "");
}

Curves curves_of(const Trained& trained, bool with_scaling) {
  Curves curves;
  for (const auto& [setting, runs] : trained) {
    if (setting.others.contains("trainer.learning_rate") && scaled(setting) == with_scaling)
      curves[{setting.d_model, setting.layers, way_of(setting)}].emplace_back(rate_of(setting), &runs);
  }
  for (auto& [key, curve] : curves)
    std::sort(curve.begin(), curve.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return curves;
}

// The seeds with which all rates of a curve were trained: a seed that one rate lacks would compare seeds.
std::vector<std::string> common_seeds(const Curve& curve) {
  std::vector<std::string> common = curve.front().second->seed_names;
  for (const auto& [rate, runs] : curve) {
    std::erase_if(common, [&, &names = runs->seed_names](const std::string& seed) {
      return std::find(names.begin(), names.end(), seed) == names.end();
    });
  }
  return common;
}

double loss_of(const TrainedRuns& runs, const std::string& seed) {
  const auto at = std::find(runs.seed_names.begin(), runs.seed_names.end(), seed) - runs.seed_names.begin();
  return runs.losses[static_cast<std::size_t>(at)];
}

/// The best rates of a curve, in steps of factor 2 (log2), one for each seed: where the parabola through the
/// lowest loss and its two neighbours is lowest. The seeds of a curve share data and initial weights, so that
/// each finds its own best rate without the noise between seeds.
struct Best {
  std::vector<double> steps;
  bool at_low_end = false,
       at_high_end = false;  // with a seed, the best rate is the least or largest one tried
  [[nodiscard]] bool inside() const { return !at_low_end && !at_high_end; }
  [[nodiscard]] double mean() const {
    return std::accumulate(steps.begin(), steps.end(), 0.0) / static_cast<double>(steps.size());
  }
};

Best best_of(const Curve& curve) {
  Best best;
  for (const std::string& seed : common_seeds(curve)) {
    std::vector<double> losses;
    for (const auto& [rate, runs] : curve) losses.push_back(loss_of(*runs, seed));
    const auto least =
        static_cast<std::size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin());
    const double step = std::log2(curve[least].first);
    best.at_low_end |= least == 0;
    best.at_high_end |= least + 1 == curve.size();
    if (least == 0 || least + 1 == curve.size()) {
      best.steps.push_back(step);
      continue;
    }
    // The rates are a factor of 2 apart.
    const double below = losses[least - 1] - losses[least], above = losses[least + 1] - losses[least];
    best.steps.push_back(step + 0.5 * (below - above) / (below + above));
  }
  return best;
}

/// The spread of best rates between seeds, of all curves whose best rates are known.
costmodel::PooledSpread spread_of_best(const std::vector<const Curves*>& all) {
  std::vector<std::vector<double>> groups;
  for (const Curves* curves : all) {
    for (const auto& [key, curve] : *curves) {
      const Best best = best_of(curve);
      if (best.inside()) groups.push_back(best.steps);
    }
  }
  return costmodel::pooled_spread(groups);
}

/// Whether the best rates of the curves are at most one step of factor 2 apart.
Claim stays(const costmodel::PooledSpread& spread, const Curves& curves, const std::string& sentence,
            std::string (*name)(const Key&)) {
  Claim claim{sentence, "steps of factor 2 between the best rates", {}, Verdict::cannot_be_told, ""};
  if (curves.size() < 2) return claim;
  bool inside = true;
  Best lowest, highest;
  for (const auto& [key, curve] : curves) {
    const Best best = best_of(curve);
    if (best.steps.empty()) return claim;
    inside = inside && best.inside();
    if (lowest.steps.empty() || best.mean() < lowest.mean()) lowest = best;
    if (highest.steps.empty() || best.mean() > highest.mean()) highest = best;
    claim.finding +=
        fmt::format("{}{}: {:.2g}{}", claim.finding.empty() ? "" : "; ", name(key), std::exp2(best.mean()),
                    best.at_high_end  ? " or more"
                    : best.at_low_end ? " or less"
                                      : "");
  }
  const double apart = highest.mean() - lowest.mean(),
               half = costmodel::half_width(spread, 1 / static_cast<double>(highest.steps.size()) +
                                                        1 / static_cast<double>(lowest.steps.size()));
  if (half < 0) return claim;
  claim.finding +=
      fmt::format("; {}{:.2f} ± {:.2f} steps of factor 2 apart", inside ? "" : "at least ", apart, half);
  constexpr double kOneStep = 1.01;  // the rates are rounded
  if (inside && apart + half <= kOneStep) claim.verdict = Verdict::holds;
  // A best rate beyond the end of a grid is farther away than the end.
  if (!lowest.at_high_end && !highest.at_low_end && apart - half > kOneStep)
    claim.verdict = Verdict::does_not_hold;
  return claim;
}

Curves part_of(const Curves& curves, const std::function<bool(const Key&)>& wanted) {
  Curves part;
  for (const auto& curve : curves) {
    if (wanted(curve.first)) part.insert(curve);
  }
  return part;
}

std::string size_of(const Key& key) { return fmt::format("d = {}, L = {}", key.d_model, key.layers); }
std::string way_of_key(const Key& key) { return key.way; }

}  // namespace

Figure learning_rates(Assumptions& assume) {
  Figure figure;
  figure.columns = {"way",           "d_model", "layers", "rate_transfer",
                    "learning_rate", "seeds",   "loss",   "loss_std"};
  const Trained trained = trained_runs(assume, {"lr-transfer", "lr-settings"});
  const Curves with = curves_of(trained, true), without = curves_of(trained, false);
  for (const Curves* curves : {&with, &without}) {
    const std::string transfer = curves == &with ? "complete_p" : "none";
    for (const auto& [key, curve] : *curves) {
      for (const auto& [rate, runs] : curve) {
        Cell deviation = std::string();
        if (runs->seeds() > 1 && std::isfinite(runs->loss()))
          deviation = costmodel::spread_of(runs->losses).standard_deviation;
        figure.rows.push_back({key.way, key.d_model, key.layers, transfer, rate,
                               static_cast<std::int64_t>(runs->seeds()), runs->loss(), deviation});
      }
    }
  }
  const costmodel::PooledSpread spread = spread_of_best({&with, &without});
  const auto one_size = [](const Key& key) { return key.d_model == 64 && key.layers == 4; };
  const auto four_layers = [](const Key& key) { return key.layers == 4 && key.way == kCentralised; };
  const auto one_width = [](const Key& key) { return key.d_model == 64 && key.way == kCentralised; };
  add_claims(
      figure, "proxy",
      {stays(spread, part_of(with, one_size),
             "the best learning rate stays within a factor of 2 over centralised and federated runs, K, "
             "dense models and mixtures of experts, and outer optimisers",
             way_of_key),
       stays(spread, part_of(with, four_layers),
             "with CompleteP, the best learning rate stays within a factor of 2 over widths", size_of),
       stays(spread, part_of(with, one_width),
             "with CompleteP, the best learning rate stays within a factor of 2 over depths", size_of),
       stays(spread, part_of(without, four_layers),
             "without scaling, the best learning rate stays within a factor of 2 over widths", size_of)});
  state_proxy(assume);
  figure.again = trained_again(
      "--set strategy.method=centralised --set workload.tokens=655_360 --set trainer.warmup_steps=32 --set "
      "trainer.learning_rate=0.004");
  figure.notes = {
      "The best rate of a seed is where the parabola through its lowest loss and the two beside it is "
      "lowest; "
      "the interval is that of the spread between seeds. Until November 2026 a rate counted as possibly best "
      "while its mean loss was within the noise between seeds, and no verdict could be told.",
      "Runs of 0.66 M tokens. The last claim is no claim of the paper: it is the check that the "
      "experiment can show a rate that moves.",
      "Without scaling, the learning rate and epsilon of hidden matrices are not scaled; the initial weights "
      "and the multipliers of the forward pass are those of CompleteP."};
  return figure;
}

}  // namespace fomoe::figures
