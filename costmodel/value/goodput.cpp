#include "costmodel/value/goodput.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "costmodel/compose/extra_traffic.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/math/quantiles.hpp"
#include "costmodel/math/random.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/value/cost.hpp"

namespace fomoe::costmodel {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Limits beyond which a run counts as never ending: consecutive events without progress, and events in total.
constexpr int kMaxEventsWithoutProgress = 100'000, kMaxEvents = 500'000;

// Number of checkpoints in `work_s` of work: one after every τ of work, none at the end.
double checkpoints_in(double work_s, double interval_s) {
  return std::max(0.0, std::ceil(work_s / interval_s * (1 - 1e-12)) - 1);
}

double finish_waiting_s(const FaultyRun& run, const Gap& gap) {
  const double sites = run.sites;
  const double site_rate = sites * run.site_failures_per_s, link_rate = sites * run.link_failures_per_s;
  const double cycle_s = run.interval_s + run.checkpoint_s, recovery_s = run.outage_s + run.transfer_s;
  double t = 0, left_s = run.work_s, into_s = 0;  // into_s: time since the last checkpoint
  int events = 0, events_without_progress = 0;
  const auto site_fails = [&] {
    into_s = 0;
    int tries = 0;
    for (double y = gap(site_rate); y < recovery_s; y = gap(site_rate)) {
      t += y;
      if (++tries == kMaxEventsWithoutProgress || ++events >= kMaxEvents) return false;
    }
    t += recovery_s;
    return true;
  };
  for (; events < kMaxEvents && events_without_progress < kMaxEventsWithoutProgress;
       ++events, ++events_without_progress) {
    const double count = checkpoints_in(left_s, run.interval_s);
    const double needed_s = left_s + count * run.checkpoint_s - into_s;
    const double to_site = gap(site_rate), to_link = gap(link_rate);
    const double x = std::min(to_site, to_link);
    if (x >= needed_s) return t + needed_s;
    const double saved = std::min(std::floor((into_s + x) / cycle_s), count);
    left_s -= saved * run.interval_s;
    into_s += x - saved * cycle_s;
    t += x;
    bool site_failed = to_site <= to_link;
    if (!site_failed) {
      if (run.link_outage_s == kNever) return kNever;
      const double y = gap(site_rate);
      site_failed = y < run.link_outage_s;
      t += std::min(y, run.link_outage_s);
    }
    if (site_failed && !site_fails()) return kNever;
    if (saved > 0) events_without_progress = 0;
  }
  return kNever;
}

// Simulates round by round; rounds without events are advanced together.
double finish_dropping_s(const FaultyRun& run, const Gap& gap) {
  const double checkpoint_s_per_round =
      run.checkpoint_s * run.round_s / run.interval_s;  // checkpoint time in every round
  const double round_s = run.round_s + checkpoint_s_per_round;
  const double rate = run.site_failures_per_s + run.link_failures_per_s;
  double t = 0, left_s = run.work_s, saved_left_s = run.work_s;
  std::vector<double> returns;  // times at which absent sites return
  double to_failure = -1;       // until a working site fails; −1: not drawn yet
  double least_left_s = left_s;
  int events_without_progress = 0;
  for (int event = 0; event < kMaxEvents && events_without_progress < kMaxEventsWithoutProgress;
       ++event, ++events_without_progress) {
    if (left_s < least_left_s) events_without_progress = 0;
    least_left_s = std::min(least_left_s, left_s);
    std::erase_if(returns, [&](double when) { return when <= t * (1 + 1e-12); });
    const int up = run.sites - static_cast<int>(returns.size());
    if (up == 0) {  // no site has the state any more
      const double back = *std::min_element(returns.begin(), returns.end());
      if (back == kNever) return kNever;
      t = back;
      left_s = saved_left_s;
      to_failure = -1;
      continue;
    }
    if (to_failure < 0) to_failure = gap(up * rate);
    // Whole rounds until the next failure or the next return, or until the work is done.
    const double share = static_cast<double>(up) / run.sites;
    const double rounds_left = left_s / (run.round_s * share);
    const double back = returns.empty() ? kNever : *std::min_element(returns.begin(), returns.end());
    const double quiet = std::min(std::floor(to_failure / round_s), std::ceil((back - t) / round_s));
    if (rounds_left <= to_failure / round_s && rounds_left <= quiet + (quiet * round_s < back - t ? 1 : 0)) {
      // The last checkpoint is not written.
      return t + rounds_left * run.round_s +
             checkpoints_in(rounds_left * run.round_s, run.interval_s) * run.checkpoint_s;
    }
    if (quiet >= 1) {
      left_s -= quiet * run.round_s * share;
      t += quiet * round_s;
      to_failure -= quiet * round_s;
      const double done_s = run.work_s - left_s;
      saved_left_s = run.work_s - std::floor(done_s / run.interval_s) * run.interval_s;
      if (back <= t) to_failure = -1;  // more sites can fail now; exponential gaps have no memory
      continue;
    }
    // One site fails within this round.
    const double x = to_failure;
    const bool link_failed =
        run.site_failures_per_s <= 0 || gap(run.link_failures_per_s) < gap(run.site_failures_per_s);
    const double absence_s = (link_failed ? run.link_outage_s : run.outage_s) + run.transfer_s;
    if (run.timeout_s >= absence_s) {
      t += round_s + absence_s + x;  // the site computes its part of the round again
      left_s -= run.round_s * share;
    } else {
      returns.push_back(t + x + absence_s);
      t += round_s + run.timeout_s;
      left_s -= run.round_s * (share - 1.0 / run.sites);
    }
    to_failure = -1;
  }
  return kNever;
}

// Time to send the state to the site with the slowest transfer: for each site the fastest source counts,
// latency + bytes ÷ slowest link.
double transfer_s(const Scenario& scenario, double bytes) {
  const platforms::Platform platform = effective_platform(scenario.platform, scenario.network);
  double worst = 0;
  for (int to = 0; to < platform.size(); ++to) {
    double best = kNever;
    for (int from = 0; from < platform.size(); ++from) {
      if (from == to) continue;
      best = std::min(best, platform.path(from, to).latency_s + bytes / platform.route_bytes_per_s(from, to));
    }
    if (platform.size() > 1) worst = std::max(worst, best);
  }
  return worst;
}

struct Samples {
  std::vector<double> finish_s;  // sorted
  double goodput = 0;            // mean
};

// Limit on the number of random draws of all samples together. Runs with very many failures differ little
// from each other, so fewer samples suffice for them.
constexpr std::int64_t kMaxDraws = 2'000'000, kMinSamples = 5;

// All configurations use the same seed, so that differences between them are not random.
Samples sample(const FaultyRun& run, std::int64_t wanted, std::uint64_t seed) {
  Samples samples;
  std::int64_t draws = 0;
  for (std::int64_t i = 0; i < wanted && (i < kMinSamples || draws < kMaxDraws); ++i) {
    RandomEngine random = seeded_engine(seed, 0x60'0d'00'00ULL + static_cast<std::uint64_t>(i));
    const auto exponential = [&](double events_per_s) {
      if (events_per_s <= 0) return kNever;
      ++draws;
      const double uniform = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;  // in (0, 1)
      return -std::log(uniform) / events_per_s;
    };
    samples.finish_s.push_back(finish_s(run, exponential));
    samples.goodput += run.work_s / samples.finish_s.back();
  }
  samples.goodput /= static_cast<double>(samples.finish_s.size());
  std::sort(samples.finish_s.begin(), samples.finish_s.end());
  return samples;
}

std::optional<double> cost_of(const RunReport& report, const Scenario& scenario, double wall_clock_s) {
  if (!scenario.prices || !std::isfinite(wall_clock_s)) return std::nullopt;
  RunReport longer = report;
  longer.wall_clock_s = wall_clock_s;
  add_cost(longer, scenario);
  return longer.cost->cost_total;
}

}  // namespace

double finish_s(const FaultyRun& run, const Gap& gap) {
  return run.policy == FailurePolicy::wait ? finish_waiting_s(run, gap) : finish_dropping_s(run, gap);
}

double young_interval_s(double checkpoint_s, double mtbf_s) {
  return mtbf_s == kNever ? kNever : std::sqrt(2 * checkpoint_s * mtbf_s);
}

double daly_interval_s(double checkpoint_s, double mtbf_s) {
  if (mtbf_s == kNever) return kNever;
  if (checkpoint_s >= 2 * mtbf_s) return mtbf_s;
  const double ratio = checkpoint_s / (2 * mtbf_s);
  return std::sqrt(2 * checkpoint_s * mtbf_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - checkpoint_s;
}

double expected_finish_s(const FaultyRun& run) {
  const double rate = run.sites * run.site_failures_per_s;
  const double before_last = checkpoints_in(run.work_s, run.interval_s);
  const double last_s = run.work_s - before_last * run.interval_s;
  if (rate == 0) return run.work_s + before_last * run.checkpoint_s;
  return std::exp(rate * (run.outage_s + run.transfer_s)) / rate *
         (before_last * std::expm1(rate * (run.interval_s + run.checkpoint_s)) + std::expm1(rate * last_s));
}

double recommended_timeout_s(const FaultyRun& run, double healthy_wait_s) {
  const double absence_s = run.outage_s + run.transfer_s;
  const double dropping_s = healthy_wait_s + std::ceil(absence_s / run.round_s) * run.round_s / run.sites;
  const double waiting_s = absence_s + run.round_s / 2;
  return run.sites > 1 && dropping_s < waiting_s ? healthy_wait_s : absence_s;
}

double checkpoint_s(const Failures& failures, double state_bytes) {
  return failures.checkpoint_s ? *failures.checkpoint_s : state_bytes / *failures.storage_bytes_per_s;
}

FaultyRun faulty_run(const Scenario& scenario, const RunReport& report) {
  const Failures& failures = *scenario.failures;
  const double state_bytes =
      state_bytes_per_parameter(scenario) * static_cast<double>(parameters_per_site(scenario));
  FaultyRun run;
  run.work_s = report.wall_clock_s;
  run.round_s = report.round.duration_s;
  run.sites = scenario.strategy.method->one_site ? 1 : scenario.sites();
  run.site_failures_per_s = 1 / failures.site_mtbf_s + failures.preemptions_per_s;
  run.link_failures_per_s = 1 / failures.link_mtbf_s;
  run.outage_s = failures.detection_s + failures.restart_s;
  run.transfer_s = transfer_s(scenario, state_bytes);
  run.link_outage_s = failures.link_repair_s ? failures.detection_s + *failures.link_repair_s : kNever;
  run.checkpoint_s = checkpoint_s(failures, state_bytes);
  run.policy = failures.policy;
  return run;
}

void add_goodput(RunReport& report, const Scenario& scenario) {
  if (!scenario.failures) return;
  const Failures& failures = *scenario.failures;
  if (!failures.outages.empty() && !failures.at_random()) return;
  FaultyRun run = faulty_run(scenario, report);
  const auto rounds = static_cast<double>(report.round.count);
  const double site_rate = run.sites * run.site_failures_per_s;
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
  const double rate = site_rate + run.sites * run.link_failures_per_s;
  answer.system_mtbf_s = rate > 0 ? 1 / rate : kNever;
  answer.young_interval_s = young_interval_s(run.checkpoint_s, losing_mtbf_s);
  answer.daly_interval_s = daly_interval_s(run.checkpoint_s, losing_mtbf_s);
  double healthy_wait_s = 0;
  for (const SiteReport& site : report.sites)
    healthy_wait_s = std::max(healthy_wait_s, site.exposed_communication_s + site.idle_s);
  answer.recommended_timeout_s = recommended_timeout_s(run, healthy_wait_s);
  run.timeout_s = answer.timeout_s = failures.timeout_s.value_or(answer.recommended_timeout_s);

  double chosen = whole_rounds(answer.daly_interval_s);
  if (failures.checkpoint_interval_s) chosen = whole_rounds(*failures.checkpoint_interval_s);
  if (failures.checkpoint_rounds) chosen = static_cast<double>(*failures.checkpoint_rounds);
  answer.checkpoint_rounds = static_cast<std::int64_t>(chosen);
  const Samples samples = sample(at(chosen), failures.samples, scenario.seed);
  answer.samples = std::ssize(samples.finish_s);
  answer.goodput = samples.goodput;
  answer.finish_p50_s = quantile(samples.finish_s, 0.5);
  answer.finish_p95_s = quantile(samples.finish_s, 0.95);
  answer.cost_p50 = cost_of(report, scenario, answer.finish_p50_s);
  answer.cost_p95 = cost_of(report, scenario, answer.finish_p95_s);
  const auto never = std::count(samples.finish_s.begin(), samples.finish_s.end(), kNever);
  answer.unfinished_share = static_cast<double>(never) / static_cast<double>(answer.samples);

  // The grid: from an eighth to eight times Daly's interval, and the scenario's own interval.
  answer.recommended_rounds = answer.checkpoint_rounds;
  answer.recommended_goodput = answer.goodput;
  double last = chosen;
  for (int half_octave = -6; half_octave <= 6; ++half_octave) {
    const double candidate = whole_rounds(answer.daly_interval_s * std::exp2(half_octave / 2.0));
    if (candidate == last || candidate == chosen) continue;
    last = candidate;
    const double goodput = sample(at(candidate), failures.samples, scenario.seed).goodput;
    if (goodput <= answer.recommended_goodput) continue;
    answer.recommended_goodput = goodput;
    answer.recommended_rounds = static_cast<std::int64_t>(candidate);
  }
  report.goodput = answer;

  report.provenance.push_back(
      {"failures", Origin::assumed,
       "rates, detection, restart and policy are given in the scenario; times between failures are "
       "exponential, and all sites fail independently at the same rate; the cost excludes retransmitted "
       "bytes"});
  if (failures.checkpoint_s)
    report.provenance.push_back({"checkpoint time", Origin::assumed, "given in the scenario"});
  else
    report.provenance.push_back(
        {"checkpoint time", Origin::computed, "a site's training state ÷ its storage bandwidth"});
  if (answer.unfinished_share > 0) {
    const bool dead_links = run.link_outage_s == kNever && run.link_failures_per_s > 0;
    report.notes.push_back(
        "CANNOT FINISH in " + std::to_string(never) + " of " + std::to_string(answer.samples) + " samples: " +
        (dead_links && run.policy == FailurePolicy::wait
             ? "a failed link never recovers, and policy = \"wait\" waits for it forever; "
               "policy = \"drop\" continues without the site"
         : dead_links
             ? "failed links never recover, and in the end no site is left"
             : "failures occur faster than checkpoints save work, or a run has more than 500,000 failures"));
  }
}

}  // namespace fomoe::costmodel
