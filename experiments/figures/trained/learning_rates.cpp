// Paper, figure on the transfer of the learning rate (fig-lr-transfer): the best rate is the same however the
// model is trained, and with CompleteP, that of a small model is also that of a wider or deeper one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

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

// The mean loss over these seeds.
double loss_of(const TrainedRuns& runs, const std::vector<std::string>& seeds) {
  double sum = 0;
  for (std::size_t i = 0; i < runs.losses.size(); ++i) {
    if (std::find(seeds.begin(), seeds.end(), runs.seed_names[i]) != seeds.end()) sum += runs.losses[i];
  }
  return sum / static_cast<double>(seeds.size());
}

// The rates that may be the best one: their loss is within the noise of the smallest loss. Steps of factor 2.
struct Best {
  double rate = 0;
  double lowest_step = HUGE_VAL, highest_step = -HUGE_VAL;  // log2 of the rates that may be the best
  bool at_end = false;  // the best rate is the smallest or the largest one that was tried
};

/// Empty if the rates of the curve have no seed in common.
std::optional<Best> best_of(const Trained& trained, const Curve& curve) {
  const std::vector<std::string> seeds = common_seeds(curve);
  if (seeds.empty()) return {};
  std::vector<double> losses;
  for (const auto& [rate, runs] : curve) losses.push_back(loss_of(*runs, seeds));
  const auto smallest =
      static_cast<std::size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin());
  Best best{curve[smallest].first};
  best.at_end = smallest == 0 || smallest + 1 == curve.size();
  const double half = half_width_of_difference(trained, seeds.size());
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (losses[i] - losses[smallest] > std::max(half, 0.0)) continue;
    best.lowest_step = std::min(best.lowest_step, std::log2(curve[i].first));
    best.highest_step = std::max(best.highest_step, std::log2(curve[i].first));
  }
  return best;
}

/// Whether the best rates of the curves are at most one step of factor 2 apart.
Claim stays(const Trained& trained, const Curves& curves, const std::string& sentence,
            std::string (*name)(const Key&)) {
  Claim claim{sentence, "steps of factor 2 between the best rates", {}, Verdict::cannot_be_told, ""};
  if (curves.size() < 2) return claim;
  bool inside = true;  // all best rates lie between others: beyond the ends of a grid may be better ones
  double highest_low = -HUGE_VAL, lowest_high = HUGE_VAL, lowest = HUGE_VAL, highest = -HUGE_VAL;
  for (const auto& [key, curve] : curves) {
    const std::optional<Best> best = best_of(trained, curve);
    if (!best) return claim;
    highest_low = std::max(highest_low, best->lowest_step);
    lowest_high = std::min(lowest_high, best->highest_step);
    inside = inside && !best->at_end;
    lowest = std::min(lowest, best->lowest_step);
    highest = std::max(highest, best->highest_step);
    claim.finding += fmt::format("{}{}: {:g}{}", claim.finding.empty() ? "" : "; ", name(key), best->rate,
                                 best->at_end ? " (an end of the grid)" : "");
  }
  constexpr double kOneStep = 1.01;  // the rates are rounded
  if (half_width_of_difference(trained, 1) < 0) return claim;
  if (inside && highest - lowest <= kOneStep) claim.verdict = Verdict::holds;
  if (highest_low - lowest_high > kOneStep) claim.verdict = Verdict::does_not_hold;
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
  const auto one_size = [](const Key& key) { return key.d_model == 64 && key.layers == 4; };
  const auto four_layers = [](const Key& key) { return key.layers == 4 && key.way == kCentralised; };
  const auto one_width = [](const Key& key) { return key.d_model == 64 && key.way == kCentralised; };
  add_claims(
      figure, "proxy",
      {stays(trained, part_of(with, one_size),
             "the best learning rate stays within a factor of 2 over centralised and federated runs, K, "
             "dense models and mixtures of experts, and outer optimisers",
             way_of_key),
       stays(trained, part_of(with, four_layers),
             "with CompleteP, the best learning rate stays within a factor of 2 over widths", size_of),
       stays(trained, part_of(with, one_width),
             "with CompleteP, the best learning rate stays within a factor of 2 over depths", size_of),
       stays(trained, part_of(without, four_layers),
             "without scaling, the best learning rate stays within a factor of 2 over widths", size_of)});
  state_proxy(assume);
  figure.again = trained_again(
      "--set strategy.method=centralised --set workload.tokens=655_360 --set trainer.warmup_steps=32 --set "
      "trainer.learning_rate=0.004");
  figure.notes = {
      "Runs of 0.66 M tokens. The last claim is no claim of the paper: it is the check that the "
      "experiment can show a rate that moves.",
      "Without scaling, the learning rate and epsilon of hidden matrices are not scaled; the initial weights "
      "and the multipliers of the forward pass are those of CompleteP."};
  return figure;
}

}  // namespace fomoe::figures
