#include "experiments/analysis/interval.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/compute/site_times.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/value/cost.hpp"
#include "experiments/analysis/comparable_runs.hpp"
#include "experiments/analysis/envelope.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::commands {

namespace {

constexpr double kFactorOutside = 2;   // on what a run takes beside computation
constexpr double kMostOutside = 0.05;  // of the wall clock, up to which that factor is an answer

/// What the run takes beside computation; a run of one site waits for nothing. Sets `withheld` if nothing is
/// known.
std::optional<IntervalPart> synchronisation(const costmodel::RunReport& report,
                                            const costmodel::Scenario& scenario, std::string& withheld) {
  if (scenario.sites() < 2) return std::nullopt;
  const double waits_s = report.wall_clock_s * (1 - report.compute_utilization);
  IntervalPart part{"synchronisation", 0, 0, ""};
  const std::optional<Accuracy> accuracy = accuracy_of(scenario);
  const std::string outside = why_no_interval(report, scenario);
  if (accuracy && outside.empty()) {
    part.below_s = waits_s - waits_s / (1 + accuracy->waiting_p95);
    part.above_s = waits_s / (1 - accuracy->waiting_p95) - waits_s;
    part.how = fmt::format("{} beside computation, {:.0f} % (p95) off in {} real runs", human_time(waits_s),
                           100 * accuracy->waiting_p95, accuracy->runs);
  } else {
    part.below_s = waits_s * (1 - 1 / kFactorOutside);
    part.above_s = waits_s * (kFactorOutside - 1);
    part.how = fmt::format("{} beside computation, assumed to be right within a factor of {}, because {}",
                           human_time(waits_s), kFactorOutside,
                           outside.empty() ? "no real run was predicted with these network terms" : outside);
    if (part.above_s > kMostOutside * report.wall_clock_s)
      withheld = fmt::format("{}, while {} beside computation are more than {:.0f} % of the wall clock",
                             outside.empty() ? "no real run was predicted with these network terms" : outside,
                             human_time(waits_s), 100 * kMostOutside);
  }
  if (const auto& range = report.wall_clock_range_s) {
    part.below_s = std::hypot(part.below_s, report.wall_clock_s - range->low);
    part.above_s = std::hypot(part.above_s, range->high - report.wall_clock_s);
    part.how += ", and the range of several simulations";
  }
  return part;
}

/// The step of a site: as answered, and with the MFUs that comparable published runs reached. All three are
/// equal if the site's MFU is not assumed, or no run is comparable.
struct SiteStep {
  double least_s = 0, answered_s = 0, most_s = 0;
  bool measured = false, assumed = false;
  std::string how;  // where the spread comes from
};

SiteStep step_of(const costmodel::Scenario& scenario, int site) {
  const costmodel::AtSite at(scenario, site);
  const costmodel::Scenario& own = at.scenario();
  const costmodel::ComputeTimes own_times = costmodel::site_compute_times(scenario, site);
  costmodel::ComputeTimes times = own_times;
  times.slow_down(scenario.platform.sites[static_cast<std::size_t>(site)].compute_factor);
  SiteStep step;
  step.least_s = step.answered_s = step.most_s = times.step_s();
  step.measured = std::holds_alternative<costmodel::ProfiledCompute>(own.compute);
  step.assumed = std::holds_alternative<costmodel::AssumedDevice>(own.compute);
  if (!step.assumed) return step;
  const double sequences = costmodel::sequences_of_work(scenario, site);
  const std::optional<costmodel::Efficiency> efficiency =
      costmodel::step_efficiency(own, sequences, own_times);
  const std::optional<ComparableMfu> published = comparable_mfu(own);
  if (!published || !efficiency || efficiency->mfu <= 0) return step;
  const double mfu = efficiency->mfu;
  step.least_s *= std::min(1.0, mfu / published->high);
  step.most_s *= std::max(1.0, mfu / published->low);
  step.how = fmt::format("the assumed MFU of {}, where {} comparable published runs reached {} to {}",
                         human_percent(mfu), published->runs, human_percent(published->low),
                         human_percent(published->high));
  return step;
}

/// The computation if the steps of some site were not measured. Each step waits for the slowest site.
std::optional<IntervalPart> assumed_computation(const costmodel::RunReport& report,
                                                const costmodel::Scenario& scenario) {
  std::vector<SiteStep> steps;
  for (int site = 0; site < scenario.sites(); ++site) {
    if (costmodel::sequences_of_work(scenario, site) == 0) continue;
    steps.push_back(step_of(scenario, site));
    if (scenario.site_compute.empty()) break;  // the sites are alike
  }
  const auto longest = [&](double SiteStep::*of) {
    return std::max_element(steps.begin(), steps.end(),
                            [of](const SiteStep& a, const SiteStep& b) { return a.*of < b.*of; });
  };
  if (steps.empty() ||
      std::all_of(steps.begin(), steps.end(), [](const SiteStep& step) { return step.measured; }))
    return std::nullopt;
  IntervalPart part{"computation", 0, 0, "the step time is given, and taken as exact", 1};
  if (std::none_of(steps.begin(), steps.end(), [](const SiteStep& step) { return step.assumed; }))
    return part;
  const SiteStep& most = *longest(&SiteStep::most_s);
  const double answered_s = longest(&SiteStep::answered_s)->answered_s;
  double compute_s = 0;
  for (const costmodel::SiteReport& site : report.sites)
    compute_s = std::max(compute_s, site.compute_s * static_cast<double>(report.round.count));
  part.below_s = compute_s * (1 - longest(&SiteStep::least_s)->least_s / answered_s);
  part.above_s = compute_s * (most.most_s / answered_s - 1);
  part.how = most.how.empty() ? "the assumed MFU is taken as exact, because no published run is comparable"
                              : most.how;
  if (steps.size() > 1 && !most.how.empty()) part.how += ", at the site whose steps may take longest";
  return part;
}

/// The bounds of one side, in quadrature.
double together(const std::vector<IntervalPart>& parts, double IntervalPart::*side) {
  double sum = 0;
  for (const IntervalPart& part : parts) sum += part.*side * part.*side;
  return std::sqrt(sum);
}

/// Seconds of the difference between a bound and its centre, `together()` of one side, in which sites
/// compute.
double computed_s(const std::vector<IntervalPart>& parts, double IntervalPart::*side) {
  double computed = 0;
  for (const IntervalPart& part : parts) computed += part.computed_share * part.*side * part.*side;
  const double bound_s = together(parts, side);
  return bound_s > 0 ? computed / bound_s : 0;
}

/// The cost of a run of `seconds` in which the sites compute for `more_s` more than in the report.
double cost_at(const costmodel::RunReport& report, const costmodel::Scenario& scenario, double seconds,
               double more_s) {
  costmodel::RunReport other = report;
  other.wall_clock_s = seconds;
  for (costmodel::SiteReport& site : other.sites)
    site.compute_s *=
        std::max(0.0, 1 + more_s / std::max(1e-9, report.wall_clock_s * report.compute_utilization));
  costmodel::add_cost(other, scenario);
  return other.cost->cost_total;
}

}  // namespace

AnswerInterval interval_of(const costmodel::RunReport& report, const costmodel::Scenario& scenario,
                           const std::vector<costmodel::Uncertainty>& inputs) {
  AnswerInterval interval;
  if (auto part = synchronisation(report, scenario, interval.withheld)) interval.parts.push_back(*part);
  if (auto part = assumed_computation(report, scenario)) interval.parts.push_back(*part);
  for (const costmodel::Uncertainty& input : inputs)
    interval.parts.push_back({input.input, std::max(0.0, report.wall_clock_s - input.wall_clock_low_s),
                              std::max(0.0, input.wall_clock_high_s - report.wall_clock_s), input.how,
                              input.of_computation ? 1.0 : 0.0});
  double centre_s = report.wall_clock_s, repeated_s = 0;
  if (report.goodput) {
    centre_s = report.goodput->finish_p50_s;
    repeated_s = report.goodput->repeated_share * (centre_s - report.wall_clock_s);
    if (!std::isfinite(report.goodput->finish_p95_s)) {
      interval.withheld = "more than 5 % of the runs with failures never end";
      return interval;
    }
    interval.parts.push_back({"failures", centre_s - report.wall_clock_s,
                              report.goodput->finish_p95_s - centre_s,
                              "from a run without failures to the p95 of drawn runs, around their median",
                              report.goodput->repeated_share});
  }
  interval.low_s = std::max(0.0, centre_s - together(interval.parts, &IntervalPart::below_s));
  interval.high_s = centre_s + together(interval.parts, &IntervalPart::above_s);
  if (scenario.prices && report.cost) {
    interval.cost_low = cost_at(report, scenario, interval.low_s,
                                repeated_s - computed_s(interval.parts, &IntervalPart::below_s));
    interval.cost_high = cost_at(report, scenario, interval.high_s,
                                 repeated_s + computed_s(interval.parts, &IntervalPart::above_s));
  }
  return interval;
}

std::string interval_text(const AnswerInterval& interval, const costmodel::Scenario& scenario) {
  if (!interval.withheld.empty())
    return fmt::format("95 % interval: none is given, because {}\n", interval.withheld);
  std::string text =
      fmt::format("95 % interval: {} to {}", human_time(interval.low_s), human_time(interval.high_s));
  if (interval.cost_low)
    text += fmt::format(", {} to {}", human_money(*interval.cost_low, scenario.prices->currency),
                        human_money(*interval.cost_high, scenario.prices->currency));
  text += '\n';
  for (const IntervalPart& part : interval.parts)
    text += part.below_s + part.above_s == 0
                ? fmt::format("  {}: {}\n", part.what, part.how)
                : fmt::format("  {}: −{} to +{} ({})\n", part.what, human_time(part.below_s),
                              human_time(part.above_s), part.how);
  return text;
}

scenario::Json interval_json(const AnswerInterval& interval) {
  scenario::Json parts = scenario::Json::array();
  for (const IntervalPart& part : interval.parts)
    parts.push_back(
        {{"what", part.what}, {"below_s", part.below_s}, {"above_s", part.above_s}, {"how", part.how}});
  if (!interval.withheld.empty()) return {{"withheld", interval.withheld}, {"parts", parts}};
  scenario::Json json = {{"low_s", interval.low_s}, {"high_s", interval.high_s}, {"parts", parts}};
  if (interval.cost_low) {
    json["cost_low"] = *interval.cost_low;
    json["cost_high"] = *interval.cost_high;
  }
  return json;
}

}  // namespace fomoe::commands
