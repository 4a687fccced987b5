#include "costmodel/value/goodput.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/compute/own_pace.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/math/quantiles.hpp"
#include "costmodel/math/random.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/value/cost.hpp"

namespace fomoe::costmodel {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
bool others_have_the_state(const Strategy& strategy) {
  return !strategy.method->one_site &&
         residency_of(*strategy.method, strategy.sharding) == Residency::replica;
}

// Time to send the state to the site with the slowest transfer: for each site the fastest source counts,
// latency + bytes ÷ the rate of the slowest link and of the connections.
double transfer_s(const Scenario& scenario, double bytes) {
  const platforms::Platform platform = effective_platform(scenario.platform, scenario.network);
  const auto bytes_per_s = [&](int from, int to) {
    const double round_trip_s = platform.path(from, to).latency_s + platform.path(to, from).latency_s;
    double links = std::min({platform.sites[static_cast<std::size_t>(from)].uplink_bytes_per_s,
                             platform.path(from, to).bandwidth_bytes_per_s,
                             platform.sites[static_cast<std::size_t>(to)].downlink_bytes_per_s});
    for (const int index : platform.shared_by(from, to)) {
      const platforms::SharedLink& link = platform.shared_links[static_cast<std::size_t>(index)];
      if (!link.per_flow) links = std::min(links, link.bandwidth_bytes_per_s);
    }
    return std::min({links, flow_cap_bytes_per_s(scenario.network, round_trip_s, platform.path(from, to)),
                     shared_cap_bytes_per_s(scenario.network, platform, from, to)});
  };
  double worst = 0;
  for (int to = 0; to < platform.size(); ++to) {
    double best = kNever;
    for (int from = 0; from < platform.size(); ++from) {
      if (from == to) continue;
      best = std::min(best, platform.path(from, to).latency_s + bytes / bytes_per_s(from, to));
    }
    if (platform.size() > 1) worst = std::max(worst, best);
  }
  return worst;
}

/// Where all go back to a checkpoint, and where nobody else has a site's state, sites read it from their own
/// storage.
double returning_s(const Scenario& scenario, FailurePolicy policy) {
  const double state_bytes = state_bytes_per_site(scenario);
  const bool sent = others_have_the_state(scenario.strategy) &&
                    (policy == FailurePolicy::drop || at_own_pace(scenario.strategy));
  return sent ? transfer_s(scenario, state_bytes) : restore_s(*scenario.failures, state_bytes);
}

struct Samples {
  std::vector<double> finish_s;  // sorted
  double goodput = 0;            // mean
  double repeated_share = 0;     // share of the lost time in which sites do work again
};

// Limit on the number of random draws of all samples together. Runs with very many failures differ little
// from each other, so fewer samples suffice for them.
constexpr std::int64_t kMaxDraws = 2'000'000, kMinSamples = 5;

// All configurations use the same seed, so that differences between them are not random.
/// The random numbers of a sample are the same for all scenarios, so that scenarios differ by what they are
/// and not by chance. Engines (2.5 kB each) are kept, because seeding one takes longer than all else in a
/// sample.
RandomEngine engine_of_sample(std::uint64_t seed, std::int64_t sample) {
  constexpr std::int64_t kMostKept = 4096;
  const auto seeded = [seed](std::int64_t i) {
    return seeded_engine(seed, 0x60'0d'00'00ULL + static_cast<std::uint64_t>(i));
  };
  if (sample >= kMostKept) return seeded(sample);
  thread_local std::uint64_t seed_of_all = seed;
  thread_local std::vector<RandomEngine> engines;
  if (seed_of_all != seed) engines.clear();
  seed_of_all = seed;
  while (std::ssize(engines) <= sample) engines.push_back(seeded(std::ssize(engines)));
  return engines[static_cast<std::size_t>(sample)];
}

Samples sample(const FaultyRun& run, std::int64_t wanted, std::uint64_t seed) {
  Samples samples;
  double all_repeated_s = 0, all_lost_s = 0;
  std::int64_t draws = 0;
  for (std::int64_t i = 0; i < wanted && (i < kMinSamples || draws < kMaxDraws); ++i) {
    RandomEngine random = engine_of_sample(seed, i);
    const auto exponential = [&](double events_per_s) {
      if (events_per_s <= 0) return kNever;
      ++draws;
      const double uniform = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;  // in (0, 1)
      return -std::log(uniform) / events_per_s;
    };
    double repeated_s = 0;
    samples.finish_s.push_back(finish_s(run, exponential, repeated_s));
    samples.goodput += run.work_s / samples.finish_s.back();
    if (samples.finish_s.back() == kNever) continue;
    all_repeated_s += repeated_s;
    all_lost_s += samples.finish_s.back() - run.work_s;
  }
  samples.repeated_share = all_lost_s > 0 ? all_repeated_s / all_lost_s : 0;
  samples.goodput /= static_cast<double>(samples.finish_s.size());
  std::sort(samples.finish_s.begin(), samples.finish_s.end());
  return samples;
}

/// Cost and energy of the run if it takes so long; empty without prices and power, and if it never ends.
std::optional<Cost> cost_of(const RunReport& report, const Scenario& scenario, double wall_clock_s,
                            const Samples& samples) {
  if (!report.cost || !std::isfinite(wall_clock_s)) return std::nullopt;
  RunReport longer = report;
  longer.wall_clock_s = wall_clock_s;
  const double repeated_s = samples.repeated_share * (wall_clock_s - report.wall_clock_s);
  for (SiteReport& site : longer.sites) site.compute_s *= 1 + repeated_s / report.wall_clock_s;
  add_cost(longer, scenario);
  return longer.cost;
}

}  // namespace

namespace {

void train_at_own_pace(FaultyRun& run, const Scenario& scenario) {
  const OwnPaces paces = own_paces(scenario);
  run.own_pace = true;
  run.checkpoint_s = 0;
  double all = 0, cycle_s = 0;
  std::vector<double> sequences_per_s;
  for (std::size_t w = 0; w < paces.sites.size(); ++w) {
    const Pace& pace = paces.sites[w];
    const auto sequences = pace.local_steps * local_batch_sequences(scenario, static_cast<int>(w));
    sequences_per_s.push_back(pace.cycle_s > 0 ? static_cast<double>(sequences) / pace.cycle_s : 0);
    all += sequences_per_s.back();
    cycle_s += pace.cycle_s / static_cast<double>(paces.sites.size());
  }
  run.lost_s = static_cast<double>(paces.fragments) * cycle_s / 2;
  for (std::size_t w = 0; w < run.each.size(); ++w) run.each[w].share = sequences_per_s[w] / all;
}

/// What the scenario says of failures, for the answer.
void add_provenance(RunReport& report, const Failures& failures) {
  report.provenance.push_back(
      {"failures", Origin::assumed,
       std::string("rates are given in the scenario") + (failures.sites.empty() ? "" : ", for each site") +
           "; times between failures are exponential, and sites fail independently" +
           (failures.sites.empty() ? " at the same rate" : "") + "; the cost excludes retransmitted bytes"});
  if (!failures.not_given.empty()) {
    std::string defaults;
    for (const std::string& one : failures.not_given) defaults += (defaults.empty() ? "" : ", ") + one;
    report.provenance.push_back({"failures, not given", Origin::assumed, defaults});
  }
}

void add_samples(Goodput& answer, const Samples& samples, const RunReport& report, const Scenario& scenario) {
  answer.samples = std::ssize(samples.finish_s);
  answer.goodput = samples.goodput;
  answer.repeated_share = samples.repeated_share;
  answer.finish_p50_s = quantile(samples.finish_s, 0.5);
  answer.finish_p95_s = quantile(samples.finish_s, 0.95);
  const std::optional<Cost> p50 = cost_of(report, scenario, answer.finish_p50_s, samples),
                            p95 = cost_of(report, scenario, answer.finish_p95_s, samples);
  if (scenario.prices && p50) answer.cost_p50 = p50->cost_total;
  if (scenario.prices && p95) answer.cost_p95 = p95->cost_total;
  if (p50) answer.energy_p50_kwh = p50->energy_kwh;
  const auto never = std::count(samples.finish_s.begin(), samples.finish_s.end(), kNever);
  answer.unfinished_share = static_cast<double>(never) / static_cast<double>(answer.samples);
}

/// Samples that never end, "3 of 100".
std::string never_of(const Goodput& answer) {
  const auto never = std::lround(answer.unfinished_share * static_cast<double>(answer.samples));
  return std::to_string(never) + " of " + std::to_string(answer.samples);
}

/// Failures of sites that train at their own pace.
void add_goodput_at_own_pace(RunReport& report, const Scenario& scenario, const FaultyRun& run) {
  Goodput answer;
  answer.own_pace = true;
  answer.transfer_s = run.transfer_s;
  const double rate = all_site_failures_per_s(run) + all_link_failures_per_s(run);
  answer.system_mtbf_s = rate > 0 ? 1 / rate : kNever;
  add_samples(answer, sample(run, scenario.failures->samples, scenario.seed), report, scenario);
  report.goodput = answer;
  add_provenance(report, *scenario.failures);
  report.notes.push_back(
      "sites train at their own pace: a failed site stops only itself, whatever failures.policy says; the "
      "server "
      "at the first site is taken not to fail");
  if (answer.unfinished_share > 0)
    report.notes.push_back("CANNOT FINISH in " + never_of(answer) +
                           " samples: failed links never recover, or a run has more than 500,000 failures");
}

}  // namespace

std::optional<double> RunAmounts::cost_of_more_tokens(double factor) const {
  if (!cost) return std::nullopt;
  return costmodel::cost_of_more_tokens(*cost, ports_per_month, wall_clock_s, factor);
}

RunAmounts amounts_of(const RunReport& report) {
  RunAmounts amounts{report.wall_clock_s, std::nullopt, std::nullopt};
  if (report.cost) {
    if (report.cost->port_cost > 0)
      amounts.ports_per_month = report.cost->port_cost / std::ceil(report.wall_clock_s / kMonthSeconds);
    if (!report.cost->currency.empty()) amounts.cost = report.cost->cost_total;
    amounts.energy_kwh = report.cost->energy_kwh;
  }
  if (!report.goodput) return amounts;
  const Goodput& goodput = *report.goodput;
  amounts.wall_clock_s = goodput.finish_p50_s;
  if (amounts.cost) amounts.cost = goodput.cost_p50.value_or(kNever);
  if (amounts.energy_kwh) amounts.energy_kwh = goodput.energy_p50_kwh.value_or(kNever);
  return amounts;
}

double checkpoint_s(const Failures& failures, double state_bytes) {
  return failures.checkpoint_s ? *failures.checkpoint_s : state_bytes / *failures.storage_bytes_per_s;
}

double restore_s(const Failures& failures, double state_bytes) {
  return failures.storage_bytes_per_s ? state_bytes / *failures.storage_bytes_per_s : *failures.checkpoint_s;
}

namespace {

/// Share of a step's work that a site does.
double share_of_batch(const Scenario& scenario, int site) {
  return static_cast<double>(local_batch_sequences(scenario, site)) /
         static_cast<double>(scenario.workload.global_batch_sequences);
}

}  // namespace

FaultyRun faulty_run(const Scenario& scenario, const RunReport& report) {
  const Failures& failures = *scenario.failures;
  const double state_bytes = state_bytes_per_site(scenario);
  FaultyRun run;
  run.work_s = report.wall_clock_s;
  run.round_s = report.round.duration_s;
  run.sites = scenario.strategy.method->one_site ? 1 : scenario.sites();
  for (int i = 0; i < run.sites; ++i) {
    const SiteFailures site = failures.at(i);
    const bool uses_links = run.sites > 1;
    run.each.push_back({1 / site.site_mtbf_s + site.preemptions_per_s, uses_links ? 1 / site.link_mtbf_s : 0,
                        site.detection_s + site.restart_s, share_of_batch(scenario, i)});
    run.site_failures_per_s += run.each.back().failures_per_s / run.sites;
    run.link_failures_per_s += run.each.back().link_failures_per_s / run.sites;
    run.outage_s += run.each.back().outage_s / run.sites;
  }
  const bool shares_differ = std::any_of(run.each.begin(), run.each.end(), [&](const FaultySite& site) {
    return site.share != run.each.front().share;
  });
  // Under policy wait, no site works without the others.
  if (failures.sites.empty() &&
      (!shares_differ || failures.policy == FailurePolicy::wait)) {  // means are rounded
    run.site_failures_per_s = run.each.front().failures_per_s;
    run.link_failures_per_s = run.each.front().link_failures_per_s;
    run.outage_s = run.each.front().outage_s;
    run.each.clear();
  }
  run.link_outage_s = failures.link_repair_s ? failures.detection_s + *failures.link_repair_s : kNever;
  run.checkpoint_s = checkpoint_s(failures, state_bytes);
  run.transfer_s = returning_s(scenario, failures.policy);
  run.policy = failures.policy;
  if (at_own_pace(scenario.strategy)) train_at_own_pace(run, scenario);
  return run;
}

void add_goodput(RunReport& report, const Scenario& scenario) {
  if (!scenario.failures) return;
  const Failures& failures = *scenario.failures;
  if (failures.policy == FailurePolicy::wait && !at_own_pace(scenario.strategy) &&
      others_have_the_state(scenario.strategy) && scenario.sites() > 1)
    report.notes.push_back(
        "policy wait: each site reads its own checkpoint after a failure; until version 1.0, the state was "
        "sent over the WAN");
  const Strategy& strategy = scenario.strategy;
  if (failures.policy == FailurePolicy::drop && strategy.method->partial_experts &&
      effective_overlap(scenario) > 1 && effective_overlap(scenario) < scenario.sites())
    report.notes.push_back(
        "policy drop: while all " + std::to_string(effective_overlap(scenario)) +
        " owners of an expert are away, the others go on and nobody trains it; it comes back with an owner, "
        "from "
        "that site's newest checkpoint, as in fomoe-train; a run that goes back to a checkpoint of all sites "
        "instead takes longer");
  if (!failures.outages.empty() && !failures.at_random()) return;
  FaultyRun run = faulty_run(scenario, report);
  if (run.own_pace) return add_goodput_at_own_pace(report, scenario, run);
  const auto rounds = static_cast<double>(report.round.count);
  const double site_rate = all_site_failures_per_s(run);
  const double losing_mtbf_s = site_rate > 0 ? 1 / site_rate : kNever;
  const auto whole_rounds = [&](double interval_s) {
    return std::clamp(std::round(interval_s / run.round_s), 1.0, rounds);
  };
  const auto at = [&](double checkpoint_rounds) {
    FaultyRun other = run;
    other.interval_s = checkpoint_rounds * run.round_s;
    return other;
  };

  Goodput answer;
  answer.policy = run.policy;
  answer.checkpoint_s = run.checkpoint_s;
  answer.transfer_s = run.transfer_s;
  const double rate = site_rate + all_link_failures_per_s(run);
  answer.system_mtbf_s = rate > 0 ? 1 / rate : kNever;
  answer.young_interval_s = young_interval_s(run.checkpoint_s, losing_mtbf_s);
  answer.daly_interval_s = daly_interval_s(run.checkpoint_s, losing_mtbf_s);
  // A site whose bytes are in flight knows that the others are there.
  double healthy_wait_s = 0, detection_s = 0;
  for (const SiteReport& site : report.sites) healthy_wait_s = std::max(healthy_wait_s, site.idle_s);
  for (int i = 0; i < run.sites; ++i) detection_s = std::max(detection_s, failures.at(i).detection_s);
  FaultyRun dropping = run;
  dropping.transfer_s = returning_s(scenario, FailurePolicy::drop);
  answer.recommended_timeout_s = recommended_timeout_s(dropping, healthy_wait_s + detection_s);
  run.timeout_s = answer.timeout_s = failures.timeout_s.value_or(answer.recommended_timeout_s);

  double chosen = whole_rounds(answer.daly_interval_s);
  if (failures.checkpoint_interval_s) chosen = whole_rounds(*failures.checkpoint_interval_s);
  if (failures.checkpoint_rounds) chosen = static_cast<double>(*failures.checkpoint_rounds);
  const bool given = failures.checkpoint_interval_s || failures.checkpoint_rounds;
  Samples samples = sample(at(chosen), failures.samples, scenario.seed);

  // The grid: from an eighth to eight times Daly's interval, and the scenario's own interval. If the others
  // go on without a failed site, checkpoints are hardly ever used: then also the whole run, and a quarter, a
  // sixteenth, … of it.
  std::vector<double> grid;
  for (int half_octave = -6; half_octave <= 6; ++half_octave)
    grid.push_back(whole_rounds(answer.daly_interval_s * std::exp2(half_octave / 2.0)));
  const double longest = grid.back();
  if (run.policy == FailurePolicy::drop)
    for (double longer = rounds; longer > longest; longer = std::floor(longer / 4)) grid.push_back(longer);
  answer.checkpoint_rounds = answer.recommended_rounds = static_cast<std::int64_t>(chosen);
  answer.recommended_goodput = samples.goodput;
  std::sort(grid.begin(), grid.end());
  grid.erase(std::unique(grid.begin(), grid.end()), grid.end());
  for (const double candidate : grid) {
    if (candidate == chosen) continue;
    Samples other = sample(at(candidate), failures.samples, scenario.seed);
    if (other.goodput <= answer.recommended_goodput) continue;
    answer.recommended_goodput = other.goodput;
    answer.recommended_rounds = static_cast<std::int64_t>(candidate);
    if (!given) samples = std::move(other);
  }
  if (!given) answer.checkpoint_rounds = answer.recommended_rounds;
  add_samples(answer, samples, report, scenario);
  report.goodput = answer;
  add_provenance(report, failures);
  if (!given)
    report.provenance.push_back(
        {"checkpoint interval", Origin::computed, "the recommended one, since the scenario gives none"});
  report.notes.insert(report.notes.end(), failures.notes.begin(), failures.notes.end());
  if (failures.checkpoint_s)
    report.provenance.push_back({"checkpoint time", Origin::assumed, "given in the scenario"});
  else
    report.provenance.push_back(
        {"checkpoint time", Origin::computed, "a site's training state ÷ its storage bandwidth"});
  if (answer.unfinished_share > 0) {
    const bool dead_links = run.link_outage_s == kNever && run.link_failures_per_s > 0;
    report.notes.push_back(
        "CANNOT FINISH in " + never_of(answer) + " samples: " +
        (dead_links && run.policy == FailurePolicy::wait
             ? "a failed link never recovers, and policy = \"wait\" waits for it forever; "
               "policy = \"drop\" continues without the site"
         : dead_links
             ? "failed links never recover, and in the end no site is left"
             : "failures occur faster than checkpoints save work, or a run has more than 500,000 failures"));
  }
}

}  // namespace fomoe::costmodel
