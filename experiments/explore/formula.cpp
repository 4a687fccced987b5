#include "experiments/explore/formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "costmodel/formula/bandwidth_curve.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/cli/waiting_cause.hpp"
#include "experiments/report/charts.hpp"
#include "experiments/results/round_json.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::explore {

namespace {

using costmodel::Scenario;

constexpr const char* kShownMethods[] = {"ddp", "diloco", "streaming_diloco", "fomoe"};

Json curve_of(const Scenario& scenario) {
  Json curve = Json::array();
  for (const costmodel::BandwidthPoint& point : costmodel::bandwidth_curve(scenario))
    curve.push_back({point.rate_factor, point.compute_utilization, point.wall_clock_s});
  return curve;
}

double utilization_at(const Scenario& scenario, double factor) {
  Scenario scaled = scenario;
  scaled.platform = platforms::scaled_bandwidth(std::move(scaled.platform), factor);
  return costmodel::closed_form(scaled).compute_utilization;
}

/// Without inputs that do not affect the times.
Scenario bare(Scenario scenario) {
  scenario.prices.reset();
  scenario.quality.reset();
  scenario.failures.reset();
  return scenario;
}

/// The name of a method with those settings that distinguish its curve.
std::string label_of(const Scenario& scenario) {
  const costmodel::Method& method = *scenario.strategy.method;
  std::string label = method.name;
  if (!method.every_step && !method.one_site) label += fmt::format(" K={}", scenario.strategy.local_steps);
  if (method.partial_experts) label += fmt::format(" O_e={}", costmodel::effective_overlap(scenario));
  return label;
}

bool has_key(const std::vector<std::string>& overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const std::string& one) { return one.starts_with(key + '='); });
}

/// The overrides with another method, which gets its own defaults from the reader. If nothing says how many
/// sites hold an expert, one site does, since fomoe would otherwise equal diloco.
std::vector<std::string> with_method(std::vector<std::string> overrides, const Scenario& present,
                                     const costmodel::Method& method) {
  if (method.name == present.strategy.method->name) return overrides;
  overrides.push_back("strategy.method=" + method.name);
  if (method.partial_experts && !has_key(overrides, "strategy.expert_overlap") &&
      present.strategy.expert_overlap == present.sites())
    overrides.emplace_back("strategy.expert_overlap=1");
  return overrides;
}

std::set<std::int64_t> tried_local_steps(const Scenario& scenario) {
  if (scenario.strategy.method->every_step || scenario.strategy.method->one_site)
    return {scenario.strategy.local_steps};
  std::set<std::int64_t> values = {scenario.strategy.local_steps};
  for (std::int64_t k = 1; k <= kLargestLocalSteps; k *= 2) values.insert(k);
  return values;
}

void mark_front(Json& points) {
  std::vector<std::pair<double, double>> amounts;
  for (const Json& point : points)
    amounts.emplace_back(point["wall_clock_s"].get<double>(), point["cost"].get<double>());
  const std::vector<bool> front = report::on_frontier(amounts);
  for (std::size_t i = 0; i < points.size(); ++i) points[i]["front"] = front[i];
}

}  // namespace

double needed_factor(const Scenario& scenario, double utilization) {
  constexpr double kLeast = 1e-6, kMost = 1e6, kPrecision = 1e-4;
  const Scenario base = bare(scenario);
  double low = kLeast, high = kMost;
  if (utilization_at(base, high) < utilization) return std::numeric_limits<double>::quiet_NaN();
  if (utilization_at(base, low) >= utilization) return 0;
  while (high / low > 1 + kPrecision) {
    const double middle = std::sqrt(low * high);
    (utilization_at(base, middle) >= utilization ? high : low) = middle;
  }
  return high;
}

Json gpus_of(const Scenario& scenario) {
  if (scenario.site_compute.empty()) return scenario.gpus.count;
  std::string counts;
  for (const costmodel::SiteCompute& site : scenario.site_compute)
    counts += (counts.empty() ? "" : "/") + std::to_string(site.gpus.count);
  return counts;
}

Json formula_answer(const Question& question, const std::vector<std::string>& overrides) {
  const Scenario scenario = read(question, overrides);
  const costmodel::Resolved resolved = costmodel::resolve(scenario);
  double rate = scenario.platform.sites.front().uplink_bytes_per_s;
  for (const platforms::Site& site : scenario.platform.sites)
    rate = std::min({rate, site.uplink_bytes_per_s, site.downlink_bytes_per_s});
  costmodel::RunReport report = costmodel::closed_form(scenario);
  report.bottleneck.waits_for = commands::waiting_cause(scenario, report);
  return {{"report", scenario::to_json(report)},
          {"label", label_of(scenario)},
          {"sent", scenario::to_json(resolved.plan.sent)},
          {"exact", !costmodel::approximates(resolved)},
          {"rate_bytes_per_s", rate},
          {"curve", curve_of(scenario)},
          {"local_steps", scenario.strategy.local_steps},
          {"method", scenario.strategy.method->name},
          {"sites", scenario.sites()},
          {"gpus_per_site", gpus_of(scenario)},
          {"command", command_of(question, overrides)}};
}

Json comparison_answer(const Question& question, const std::vector<std::string>& overrides) {
  const Scenario present = read(question, overrides);
  Json methods = Json::array(), points = Json::array(), left_out = Json::array();
  for (const costmodel::Method& method : costmodel::methods()) {
    const bool is_present = method.name == present.strategy.method->name;
    const bool shown = is_present || std::count(std::begin(kShownMethods), std::end(kShownMethods),
                                                std::string_view(method.name)) > 0;
    if (!shown && !present.prices) continue;
    try {
      const std::vector<std::string> of_method = with_method(overrides, present, method);
      const Scenario scenario = read(question, of_method);
      if (shown) {
        Json needed = Json::array();
        for (const double target : kTargets) {
          const double factor = needed_factor(scenario, target);
          needed.push_back(std::isnan(factor) ? Json() : Json(factor));
        }
        methods.push_back({{"name", method.name},
                           {"label", label_of(scenario)},
                           {"present", is_present},
                           {"curve", curve_of(scenario)},
                           {"needed", needed}});
      }
      if (!present.prices) continue;
      const std::int64_t own = scenario.strategy.local_steps;
      for (const std::int64_t steps : tried_local_steps(scenario)) {
        const std::optional<Scenario> other = with_local_steps(question, of_method, steps);
        if (!other) continue;  // for example more overlapping steps than local steps
        const costmodel::RunReport report = costmodel::closed_form(*other);
        if (!report.memory_problem.empty()) continue;
        points.push_back({{"method", method.name},
                          {"label", label_of(*other)},
                          {"local_steps", steps},
                          {"present", is_present && steps == own},
                          {"wall_clock_s", report.wall_clock_s},
                          {"cost", report.cost->cost_total},
                          {"utilization", report.compute_utilization}});
      }
    } catch (const std::exception& error) {
      left_out.push_back({{"method", method.name}, {"why", mistakes_of(error.what(), overrides)[0]["text"]}});
    }
  }
  mark_front(points);
  // The method of the present settings comes first, and has the first colour of the charts.
  std::stable_partition(methods.begin(), methods.end(),
                        [](const Json& one) { return one["present"].get<bool>(); });
  return {{"methods", methods}, {"points", points}, {"left_out", left_out}};
}

}  // namespace fomoe::explore
