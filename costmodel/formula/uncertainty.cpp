#include "costmodel/formula/uncertainty.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <variant>

#include "costmodel/compute/step_variation.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/math/quantiles.hpp"
#include "costmodel/math/replicas.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

constexpr double kNormal95 = 1.959964;  // the 97.5 % point of the normal distribution

Scenario with_compute(Scenario scenario, double factor) {
  for (platforms::Site& site : scenario.platform.sites) site.compute_factor *= factor;
  return scenario;
}

/// Change of W if every step takes `factor` times as long.
double compute_change_s(const Scenario& scenario, double factor) {
  return resolve(with_compute(scenario, factor)).wall_clock_s() - resolve(scenario).wall_clock_s();
}

bool is_composed(const Scenario& scenario) {
  const StepProfile& profile = std::get<ProfiledCompute>(scenario.compute).profile;
  return profile.origin && !profile.origin->composed.empty();
}

/// `slowest` is the scenario of the site whose steps decide.
void add_measured_steps(std::vector<Uncertainty>& list, const Scenario& scenario, const Scenario& slowest,
                        double answer_s) {
  if (!std::holds_alternative<ProfiledCompute>(slowest.compute)) return;
  const ProfilePoint& point = sampled_point(slowest);
  if (point.samples.size() < 2) return;
  // The interval belongs to the value that the answer uses: the mean of steps that are drawn from the
  // samples, and the median otherwise.
  const std::vector<double> steps_s = step_totals_s(point);
  const bool drawn = scenario.variation.from_samples;
  const Spread spread = spread_of(steps_s);
  const MedianInterval middle = median_interval(steps_s);
  const double used_s = drawn ? spread.mean : median(steps_s);
  const double low_s = drawn ? spread.mean_low : middle.low;
  const double high_s = drawn ? spread.mean_high : middle.high;
  list.push_back(
      {"measured step time", "s", low_s, high_s, answer_s + compute_change_s(scenario, low_s / used_s),
       answer_s + compute_change_s(scenario, high_s / used_s), "closed-form",
       std::string(drawn ? "the mean of " : "the median of ") + std::to_string(point.samples.size()) +
           (is_composed(slowest)      ? " steps of one micro-batch, each composed of a step of either "
                                        "depth"
            : point.sequences_per_gpu ? " measured steps"
                                      : " measured steps of one micro-batch") +
           (drawn ? ", by Student's t" : ", by ranks"),
       true});
}

/// The smallest k of a binomial distribution of n trials with at least this probability at or below it.
double binomial_quantile(double n, double q, double probability) {
  constexpr double kMany = 1000;
  if (n * q > kMany) {
    const double away = (probability < 0.5 ? -1 : 1) * kNormal95 * std::sqrt(n * q * (1 - q));
    return std::clamp(n * q + away, 0.0, n);
  }
  double below = 0, k = 0, log_pmf = n * std::log1p(-q);
  for (; k < n; ++k) {
    below += std::exp(log_pmf);
    if (below >= probability) break;
    log_pmf += std::log((n - k) / (k + 1) * q / (1 - q));
  }
  return k;
}

/// Factors on the mean step of a run in which a straggler is drawn for whole rounds or the whole run: those
/// draws have an interval of 95 %, and all sites wait for the slowest. Without any straggler, the factor is
/// 1 ÷ `mean`.
std::pair<double, double> of_long_stragglers(const Scenario& scenario, double decisions, double mean) {
  const StepVariation& variation = scenario.variation;
  const double p = variation.straggler_share, together = variation.stragglers_together;
  const double any = together * p + (1 - together) * (1 - std::pow(1 - p, scenario.sites()));
  const auto factor = [&](double probability) {
    const double share = binomial_quantile(decisions, any, probability) / decisions;
    return (1 + share * (variation.straggler_factor - 1)) / mean;
  };
  return {factor(0.025), factor(0.975)};
}

/// Standard deviation of the time that all sites compute in a mean round ÷ that of steps without variation. A
/// round is as long as the steps of its slowest site, so it varies less than one site if steps vary little,
/// and more with rare stragglers. From drawn rounds.
struct DrawnRounds {
  double mean = 1, deviation = 0;
  int rounds = 0;
};

DrawnRounds drawn_rounds(const Scenario& scenario, const Resolved& resolved) {
  constexpr double kMostDraws = 500'000;
  const auto steps = std::max<std::int64_t>(1, std::llround(resolved.plan.steps / resolved.plan.rounds));
  const int sites = scenario.strategy.method->one_site ? 1 : scenario.sites();
  std::vector<double> weights;  // of each site's step
  for (int site = 0; site < sites; ++site)
    weights.push_back(sequences_of_work(scenario, site) > 0
                          ? resolved.times.sites[resolved.counts.alike ? 0 : weights.size()].mean.step_s()
                          : 0);
  const double longest_s = *std::max_element(weights.begin(), weights.end());
  DrawnRounds drawn{
      1, 0, static_cast<int>(std::clamp(kMostDraws / static_cast<double>(steps) / sites, 50.0, 1000.0))};
  double sum = 0, squares = 0;
  for (int round = 0; round < drawn.rounds; ++round) {
    double slowest = 0;
    for (int site = 0; site < sites; ++site) {
      const auto node = static_cast<std::uint64_t>(site);
      const double factor = drawn_step_factor(scenario, node, static_cast<std::uint64_t>(round), 0, steps);
      slowest = std::max(slowest, factor * weights[static_cast<std::size_t>(site)] / longest_s);
    }
    sum += slowest;
    squares += slowest * slowest;
  }
  drawn.mean = sum / drawn.rounds;
  drawn.deviation = std::sqrt(std::max(0.0, squares / drawn.rounds - drawn.mean * drawn.mean));
  return drawn;
}

void add_varying_steps(std::vector<Uncertainty>& list, const Scenario& scenario, double answer_s,
                       bool in_answer) {
  const StepVariation& variation = scenario.variation;
  if (!variation.varies()) return;
  const Resolved resolved = resolve(scenario);
  const double mean = expected_step_factor(variation);
  const bool long_stragglers = variation.straggler_share > 0 && variation.straggler_share < 1 &&
                               variation.straggler_lasts != StragglerLasts::step;
  Scenario single_steps = scenario;
  if (long_stragglers) single_steps.variation.straggler_share = 0;
  const DrawnRounds drawn = drawn_rounds(single_steps, resolved);
  const double half =
      kNormal95 * drawn.deviation / std::sqrt(resolved.plan.rounds) / (long_stragglers ? 1 : mean);
  // An answer of the closed form has the mean step; rounds that wait for the slowest site are longer.
  const double waiting = in_answer ? 0 : std::max(0.0, drawn.mean / (long_stragglers ? 1 : mean) - 1);
  double low = std::max(0.0, 1 - half), high = 1 + waiting + half;
  if (long_stragglers) {
    const double decisions = variation.straggler_lasts == StragglerLasts::round ? resolved.plan.rounds : 1;
    std::tie(low, high) = of_long_stragglers(scenario, decisions, mean);
    // A simulated answer has stragglers that were drawn; the closed form has the mean step.
    answer_s = resolved.wall_clock_s();
    low *= std::max(0.0, 1 - half);
    high *= 1 + waiting + half;
  }
  list.push_back({"step time variation", "", low, high, answer_s + compute_change_s(scenario, low),
                  answer_s + compute_change_s(scenario, high), "closed-form",
                  "the mean of the drawn steps of one run ÷ the expected mean, where all sites wait for the "
                  "slowest: from " +
                      std::to_string(drawn.rounds) + " drawn rounds",
                  true});
}

void add_jitter(std::vector<Uncertainty>& list, const Scenario& scenario, double answer_s, bool in_answer) {
  const double jitter_s = scenario.network.jitter_s;
  if (jitter_s == 0) return;
  Scenario later = scenario;
  later.platform = platforms::changed_latencies(std::move(later.platform), [&](double latency_s) {
    return latency_s + jitter_s / scenario.network.latency_factor;
  });
  const double latencies = (resolve(later).wall_clock_s() - resolve(scenario).wall_clock_s()) / jitter_s;
  if (!(latencies > 0)) return;  // compute hides all latencies
  const double half_s = std::min(jitter_s / 2, kNormal95 * jitter_s / std::sqrt(12 * latencies));
  // The mean of a draw, and that of the largest of M draws, one of each site: an answer of the closed form,
  // which has no jitter, becomes longer by something between the two.
  const double least_s = jitter_s / 2, sites = scenario.sites(),
               most_s = in_answer ? least_s : jitter_s * sites / (sites + 1);
  const double before_s = answer_s - (in_answer ? latencies * least_s : 0);
  list.push_back({"network_model.jitter", "s", least_s - half_s, most_s + half_s,
                  before_s + latencies * (least_s - half_s), before_s + latencies * (most_s + half_s),
                  "closed-form", "the mean jitter of all latencies that a run waits for; an upper bound"});
}

void add_queues(std::vector<Uncertainty>& list, const Scenario& scenario, double answer_s) {
  Scenario queued = scenario;
  double longest_s = 0;
  for (int from = 0; from < scenario.sites(); ++from) {
    const double queue_s = scenario.platform.sites[static_cast<std::size_t>(from)].queue_s;
    longest_s = std::max(longest_s, queue_s);
    for (int to = 0; to < scenario.sites(); ++to)
      queued.platform.change_path(from, to, [&](platforms::Path& path) {
        path.latency_s += queue_s / scenario.network.latency_factor;
      });
  }
  if (longest_s == 0) return;
  const double more_s = resolve(queued).wall_clock_s() - resolve(scenario).wall_clock_s();
  list.push_back({"queues of uplinks", "s", 0, longest_s, answer_s, answer_s + more_s, "closed-form",
                  "every latency that a run waits for is longer by the sender's queue; lost packets and late "
                  "acknowledgements are not included"});
}

}  // namespace

std::vector<Uncertainty> known_spread(const Scenario& scenario, double answer_s, bool simulated) {
  std::vector<Uncertainty> list;
  const AtSite slowest(scenario, static_cast<int>(resolve(scenario).times.slowest));
  add_measured_steps(list, scenario, slowest, answer_s);
  add_varying_steps(list, scenario, answer_s, simulated);
  add_jitter(list, scenario, answer_s, simulated);
  add_queues(list, scenario, answer_s);
  for (Uncertainty& one : list) {  // no run ends before it begins
    one.wall_clock_low_s = std::max(0.0, one.wall_clock_low_s);
    one.wall_clock_high_s = std::max(0.0, one.wall_clock_high_s);
  }
  return list;
}

Interval95 in_quadrature(const std::vector<Uncertainty>& list, double answer_s) {
  double below = 0, above = 0;
  for (const Uncertainty& input : list) {
    below += std::pow(std::max(0.0, answer_s - std::min(input.wall_clock_low_s, input.wall_clock_high_s)), 2);
    above += std::pow(std::max(0.0, std::max(input.wall_clock_low_s, input.wall_clock_high_s) - answer_s), 2);
  }
  return {std::max(0.0, answer_s - std::sqrt(below)), answer_s + std::sqrt(above)};
}

}  // namespace fomoe::costmodel
