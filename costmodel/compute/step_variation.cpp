#include "costmodel/compute/step_variation.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "costmodel/math/quantiles.hpp"
#include "costmodel/math/random.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

double uniform(RandomEngine& engine) { return (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53; }

/// Decides whether steps straggle. The constructor's arguments are those of drawn_step_factor().
class Stragglers {
 public:
  Stragglers(const Scenario& scenario, std::uint64_t node, std::uint64_t round, std::uint64_t op)
      : variation_(scenario.variation) {
    if (variation_.straggler_share == 0) return;
    const StragglerLasts lasts = variation_.straggler_lasts;
    if (lasts != StragglerLasts::step) op = kNoOp;
    if (lasts == StragglerLasts::run) round = 0;
    const auto engine = [&](std::uint64_t of_node) {
      return seeded_engine(scenario.seed ^ kStragglerDraws, (round * 4096 + op) * 4096 + of_node);
    };
    if (variation_.stragglers_together > 0) all_ = engine(kAllNodes);
    if (lasts == StragglerLasts::step) return;
    RandomEngine own = engine(node);
    persistent_ = draw(own);
  }

  /// Whether the next step straggles. `engine` has the draws of single steps.
  bool next(RandomEngine& engine) {
    if (variation_.straggler_share == 0) return false;
    return persistent_ ? *persistent_ : draw(engine);
  }

 private:
  static constexpr std::uint64_t kStragglerDraws = 0x5772'6167'676c'6572, kNoOp = 4095, kAllNodes = 4095;

  bool draw(RandomEngine& engine) {
    if (variation_.stragglers_together == 0) return uniform(engine) < variation_.straggler_share;
    const bool together = uniform(all_) < variation_.stragglers_together;
    const double common = uniform(all_), own = uniform(engine);
    return (together ? common : own) < variation_.straggler_share;
  }

  const StepVariation& variation_;
  RandomEngine all_;  // equal at all sites
  std::optional<bool> persistent_;
};

std::vector<double> sample_factors(const Scenario& scenario) {
  std::vector<double> factors = step_totals_s(sampled_point(scenario));
  const double middle = median(factors);
  for (double& factor : factors) factor /= middle;
  return factors;
}

}  // namespace

const ProfilePoint& sampled_point(const Scenario& scenario) {
  const auto& profiled = std::get<ProfiledCompute>(scenario.compute);
  for (const ProfilePoint* point :
       points_of(profiled.profile, profiled.micro_batch_sequences, scenario.strategy.skip_token)) {
    if (point->local_experts == std::llround(expert_shares(scenario).of_layer(0))) return *point;
  }
  return profiled.profile.points.front();
}

std::vector<double> step_totals_s(const ProfilePoint& point) {
  std::vector<double> totals;
  for (const StepSample& sample : point.samples)
    totals.push_back(sample.forward_s + sample.backward_s + sample.optimizer_s);
  return totals;
}

double drawn_step_factor(const Scenario& scenario, std::uint64_t node, std::uint64_t round, std::uint64_t op,
                         std::int64_t repeat) {
  const StepVariation& variation = scenario.variation;
  if (!variation.varies()) return 1;
  RandomEngine engine = seeded_engine(scenario.seed, (round * 4096 + op) * 4096 + node);
  std::vector<double> samples;
  if (variation.from_samples) samples = sample_factors(scenario);
  const double sigma = std::sqrt(std::log1p(variation.coefficient * variation.coefficient));
  Stragglers stragglers(scenario, node, round, op);
  double sum = 0;
  for (std::int64_t step = 0; step < repeat; ++step) {
    double factor = 1;
    if (variation.from_samples) {
      factor = samples[below(engine, samples.size())];
    } else if (variation.coefficient > 0) {
      // Box-Muller transform (Box and Muller 1958).
      const double radius = std::sqrt(-2 * std::log(uniform(engine)));
      factor = std::exp(sigma * radius * std::cos(2 * std::acos(-1.0) * uniform(engine)) - sigma * sigma / 2);
    }
    if (stragglers.next(engine)) factor *= variation.straggler_factor;
    sum += factor;
  }
  return sum / static_cast<double>(repeat);
}

double expected_step_factor(const StepVariation& variation) {
  return 1 + variation.straggler_share * (variation.straggler_factor - 1);
}

}  // namespace fomoe::costmodel
