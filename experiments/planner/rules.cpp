#include "experiments/planner/rules.hpp"

#include <cmath>
#include <tuple>

#include "costmodel/math/root.hpp"
#include "costmodel/value/cost.hpp"

namespace fomoe::planner {

int unproven(const QualityCoordinates& quality) {
  constexpr double kFourBits = 0.5;  // bytes
  return int{!quality.averages_everything} + int{quality.overlap_share < 1} +
         int{quality.bytes_per_element < kFourBits} +
         int{quality.overlap_steps > 0 && quality.overlap_steps >= quality.local_steps};
}

bool less_risky(const QualityCoordinates& a, const QualityCoordinates& b) {
  const auto key = [](const QualityCoordinates& q) {
    return std::make_tuple(trains_less(q), unproven(q), !q.averages_everything, q.local_steps,
                           -q.overlap_share, -q.bytes_per_element, q.overlap_steps);
  };
  return key(a) < key(b);
}

Amounts to_equal_loss(const Amounts& amounts, double factor) {
  if (std::isnan(factor)) return amounts;
  return {amounts.time_s * factor,
          costmodel::cost_of_more_tokens(amounts.cost, amounts.ports_per_month, amounts.time_s, factor),
          amounts.energy_kwh * factor, amounts.ports_per_month};
}

double factor_of_amount(const Amounts& amounts, Measure measure, double wanted) {
  if (measure != Measure::cost || amounts.ports_per_month == 0) return wanted / amounts.of(measure);
  const double months = std::ceil(amounts.time_s / costmodel::kMonthSeconds);
  const double growing = amounts.cost - months * amounts.ports_per_month;  // with each token
  if (!(growing > 0)) return 0;
  return costmodel::root_of_decreasing(
      [&](double factor) { return wanted - to_equal_loss(amounts, factor).cost; }, 0.0, wanted / growing);
}

bool coarser_wire(double bytes_per_element, double known_bytes_per_element) {
  return bytes_per_element < known_bytes_per_element * (1 - 1e-9);
}

std::string broken_amount(const Amounts& amounts, const Limits& limits, double share) {
  if (limits.time_s && amounts.time_s * share > *limits.time_s) return "takes longer than the limit";
  if (limits.cost && amounts.cost * share > *limits.cost) return "costs more than the limit";
  if (limits.energy_kwh && amounts.energy_kwh * share > *limits.energy_kwh)
    return "needs more energy than the limit";
  return "";
}

std::string broken_memory(double needed_bytes, double available_bytes, const Limits& limits) {
  const bool fits = !(available_bytes > 0 && needed_bytes > available_bytes) &&
                    !(limits.gpu_memory_bytes && needed_bytes > *limits.gpu_memory_bytes);
  return fits ? "" : "does not fit into a GPU's memory";
}

std::string broken_perplexity(double perplexity, const Limits& limits) {
  if (!limits.perplexity) return "";
  if (std::isnan(perplexity)) return "has an unknown perplexity, which --within limits";
  return perplexity > *limits.perplexity ? "has a perplexity above the limit" : "";
}

std::int64_t steps_per_round(const costmodel::Method& method, std::int64_t local_steps) {
  return method.every_step ? 1 : local_steps;
}

}  // namespace fomoe::planner
