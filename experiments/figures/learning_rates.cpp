// Paper, figure on the transfer of the learning rate (fig-lr-transfer): with CompleteP, the best rate of a
// small model is also that of a wider or deeper one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/math/replicas.hpp"
#include "experiments/figures/perplexity_figures.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::figures {
namespace {

struct Size {
  std::int64_t d_model = 0, layers = 0;
  friend auto operator<=>(const Size&, const Size&) = default;
};

double rate_of(const Setting& setting) {
  return parse_number<double>(setting.others.at("trainer.learning_rate")).value();
}

bool scaled(const Setting& setting) {
  const auto found = setting.others.find("trainer.rate_transfer");
  return found == setting.others.end() || found->second == "complete_p";
}

// The tested learning rates, ascending, with their runs.
using Curve = std::vector<std::pair<double, const TrainedRuns*>>;

std::map<Size, Curve> curves_of(const Trained& trained, bool with_scaling) {
  std::map<Size, Curve> curves;
  for (const auto& [setting, runs] : trained) {
    if (setting.others.contains("trainer.learning_rate") && scaled(setting) == with_scaling)
      curves[{setting.d_model, setting.layers}].emplace_back(rate_of(setting), &runs);
  }
  for (auto& [size, curve] : curves)
    std::sort(curve.begin(), curve.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return curves;
}

// The rates that may be the best one: their loss is within the noise of the smallest loss. Steps of factor 2.
struct Best {
  double rate = 0;
  double lowest_step = 0, highest_step = 0;  // log2 of the rates that may be the best
};

Best best_of(const Trained& trained, const Curve& curve) {
  const auto smallest = std::min_element(curve.begin(), curve.end(), [](const auto& a, const auto& b) {
    return a.second->loss() < b.second->loss();
  });
  Best best{smallest->first, HUGE_VAL, -HUGE_VAL};
  const double half = half_width_of_difference(trained, smallest->second->seeds());
  for (const auto& [rate, runs] : curve) {
    if (runs->loss() - smallest->second->loss() > std::max(half, 0.0)) continue;
    best.lowest_step = std::min(best.lowest_step, std::log2(rate));
    best.highest_step = std::max(best.highest_step, std::log2(rate));
  }
  return best;
}

/// Whether the best rates of the sizes are at most one step of factor 2 apart.
Claim stays(const Trained& trained, const std::map<Size, Curve>& curves, const std::string& sentence) {
  Claim claim{
      sentence, "steps of factor 2 between the best rates of the sizes", {}, Verdict::cannot_be_told, ""};
  if (curves.size() < 2) return claim;
  double highest_low = -HUGE_VAL, lowest_high = HUGE_VAL, lowest = HUGE_VAL, highest = -HUGE_VAL;
  for (const auto& [size, curve] : curves) {
    const Best best = best_of(trained, curve);
    highest_low = std::max(highest_low, best.lowest_step);
    lowest_high = std::min(lowest_high, best.highest_step);
    lowest = std::min(lowest, best.lowest_step);
    highest = std::max(highest, best.highest_step);
    claim.finding += fmt::format("{}d = {}, L = {}: {:g}", claim.finding.empty() ? "" : "; ", size.d_model,
                                 size.layers, best.rate);
  }
  constexpr double kOneStep = 1.01;  // the rates are rounded
  if (half_width_of_difference(trained, 1) < 0) return claim;
  if (highest - lowest <= kOneStep) claim.verdict = Verdict::holds;
  if (highest_low - lowest_high > kOneStep) claim.verdict = Verdict::does_not_hold;
  return claim;
}

std::map<Size, Curve> part_of(const std::map<Size, Curve>& curves,
                              const std::function<bool(const Size&)>& wanted) {
  std::map<Size, Curve> part;
  for (const auto& curve : curves) {
    if (wanted(curve.first)) part.insert(curve);
  }
  return part;
}

}  // namespace

Figure learning_rates(Assumptions& assume) {
  Figure figure;
  figure.columns = {"d_model", "layers", "rate_transfer", "learning_rate", "seeds", "loss", "loss_std"};
  const Trained trained = trained_runs(assume, {"lr-transfer"});
  for (const bool with : {true, false}) {
    for (const auto& [size, curve] : curves_of(trained, with)) {
      for (const auto& [rate, runs] : curve) {
        Cell deviation = std::string();
        if (runs->seeds() > 1 && std::isfinite(runs->loss()))
          deviation = costmodel::spread_of(runs->losses).standard_deviation;
        figure.rows.push_back({size.d_model, size.layers, std::string(with ? "complete_p" : "none"), rate,
                               static_cast<std::int64_t>(runs->seeds()), runs->loss(), deviation});
      }
    }
  }
  const auto with = curves_of(trained, true), without = curves_of(trained, false);
  const auto four_layers = [](const Size& size) { return size.layers == 4; };
  const auto one_width = [](const Size& size) { return size.d_model == 64; };
  add_claims(figure, "proxy",
             {stays(trained, part_of(with, four_layers),
                    "with CompleteP, the best learning rate stays within a factor of 2 over widths"),
              stays(trained, part_of(with, one_width),
                    "with CompleteP, the best learning rate stays within a factor of 2 over depths"),
              stays(trained, part_of(without, four_layers),
                    "without scaling, the best learning rate stays within a factor of 2 over widths")});
  state_proxy(assume);
  figure.again = trained_again(
      "--set strategy.method=centralised --set workload.tokens=655_360 --set trainer.warmup_steps=32 --set "
      "trainer.learning_rate=0.004");
  figure.notes = {
      "Centralised runs of 0.66 M tokens. The third claim is no claim of the paper: it is the check that the "
      "experiment can show a rate that moves.",
      "Without scaling, the learning rate and epsilon of hidden matrices are not scaled; the initial weights "
      "and the multipliers of the forward pass are those of CompleteP."};
  return figure;
}

}  // namespace fomoe::figures
