// Paper, appendix "Model Falsifiability". Prediction 1: the broadcast volume of a reshuffle follows
// C·(1 − O_e/M); by formula and counted from placements that were really drawn. Prediction 2: throughput
// grows super-linearly with 1/O_e, because the freed memory takes a larger local batch.
#include <cmath>

#include "costmodel/closed_form.hpp"
#include "costmodel/memory.hpp"
#include "costmodel/placement.hpp"
#include "costmodel/plan_summary.hpp"
#include "experiments/figures/figure.hpp"

namespace fomoe::figures {

namespace {

constexpr int kSites = 8;
constexpr std::uint64_t kRedraws = 200, kSeed = 42;

/// Experts that a worker fetches in a reshuffle, of those that it then holds: the mean over redraws.
double counted_fraction(const costmodel::ModelShape& shape, int overlap) {
  const auto draw = [&](std::uint64_t epoch) {
    return costmodel::random_placement(static_cast<int>(shape.layers), static_cast<int>(shape.experts),
                                       kSites, overlap, kSeed, epoch);
  };
  costmodel::Placement before = draw(0);
  double fetched = 0;
  for (std::uint64_t epoch = 1; epoch <= kRedraws; ++epoch) {
    costmodel::Placement after = draw(epoch);
    fetched += static_cast<double>(costmodel::migrations(before, after).size());
    before = std::move(after);
  }
  const double held = static_cast<double>(shape.layers * shape.experts) * overlap;  // by all workers
  return fetched / (held * kRedraws);
}

void prediction_1(Figure& figure) {
  const costmodel::ModelShape& shape = *costmodel::find_preset("medium");
  double largest_gap = 0;
  for (int overlap = 1; overlap <= kSites; ++overlap) {
    costmodel::Scenario scenario = paper_scenario(shape, kSites, 32);
    scenario.strategy.expert_overlap = overlap;
    const double volume = costmodel::summarise(scenario).sent.migration;  // T = 1: of each reshuffle
    const costmodel::Fixed fixed = costmodel::fixed_of(scenario);
    const double held_bytes =
        fixed.expert_elements * costmodel::axes_of(scenario).bytes_per_element * overlap / kSites;
    const double fraction = volume / held_bytes;
    const double counted = counted_fraction(shape, overlap);
    largest_gap = std::fmax(largest_gap, std::abs(counted - fraction));
    figure.rows.push_back({std::string("1 broadcast volume"), static_cast<std::int64_t>(overlap), fraction,
                           counted, volume, counted * held_bytes, std::string(""), std::string("")});
  }
  figure.findings["prediction_1"] = {
      {"migrated_fraction", "1 − O_e/M: holds"},
      {"largest_difference_counted", largest_gap},
      {"volume",
       "C·(O_e/M)·(1 − O_e/M), because C holds N_le = O_e·N_e/M: it peaks at O_e = M/2 and is not "
       "the line that the paper draws"}};
}

}  // namespace

Figure predictions() {
  Figure figure;
  figure.columns = {"prediction",
                    "expert_overlap",
                    "migrated_fraction_formula",
                    "migrated_fraction_counted",
                    "migrated_bytes_per_site_formula",
                    "migrated_bytes_per_site_counted",
                    "largest_local_batch_sequences",
                    "tokens_per_s"};
  prediction_1(figure);
  figure.assumptions = {{"prediction_1",
                         {{"model", "medium"},
                          {"sites", kSites},
                          {"redraws", kRedraws},
                          {"seed", kSeed},
                          {"payload_dtype", "bf16"}}}};
  return figure;
}

}  // namespace fomoe::figures
