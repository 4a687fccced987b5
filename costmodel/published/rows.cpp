#include "costmodel/published/rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace fomoe::costmodel {

namespace {

std::optional<double> nats_of(const std::string& metric, const std::optional<double>& value) {
  if (!value) return std::nullopt;
  if (metric == "loss") return *value;
  if (metric == "perplexity") return std::log(*value);
  if (metric == "bits_per_byte") return *value * std::numbers::ln2;
  return std::nullopt;
}

}  // namespace

bool PublishedRun::usable() const { return hand == "first" && checked == "yes" && outcome == "finished"; }
bool PublishedRun::independent() const { return id.ends_with("-independent"); }
std::optional<double> PublishedRun::nats() const { return nats_of(metric, value); }
std::optional<double> PublishedRun::baseline_nats() const { return nats_of(metric, baseline_value); }

double points_above(double loss, double baseline) { return 100 * (loss / baseline - 1); }

std::vector<const PublishedRun*> by_distance(std::vector<const PublishedRun*> runs, double parameters,
                                             std::int64_t replicas, std::int64_t local_steps) {
  const auto doublings = [](double a, double b) { return std::abs(std::log2(a / b)); };
  std::vector<std::pair<double, const PublishedRun*>> order;
  for (const PublishedRun* run : runs) {
    double distance = std::numeric_limits<double>::infinity();
    if (run->parameters_active && run->replicas > 0 && run->local_steps > 0)
      distance = doublings(*run->parameters_active, parameters) +
                 doublings(static_cast<double>(run->replicas), static_cast<double>(replicas)) +
                 doublings(static_cast<double>(run->local_steps), static_cast<double>(local_steps));
    order.emplace_back(distance, run);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i] = order[i].second;
  return runs;
}

}  // namespace fomoe::costmodel
