#include "costmodel/timeline/report_assembly.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <utility>

#include "costmodel/compose/memory_remedy.hpp"
#include "costmodel/compose/warnings.hpp"
#include "costmodel/compute/site_times.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/math/replicas.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/timeline/attendance_report.hpp"
#include "costmodel/timeline/class_mean.hpp"
#include "costmodel/timeline/critical_path.hpp"
#include "costmodel/value/cost.hpp"
#include "costmodel/value/goodput.hpp"
#include "costmodel/value/quality.hpp"

namespace fomoe::costmodel {

namespace {

void find_busiest_link(RunReport& report, const platforms::Platform& platform, const PairBytes& per_round) {
  double busiest_s = 0;
  const auto consider = [&](const std::string& name, double bytes, double bytes_per_s) {
    if (bytes / bytes_per_s <= busiest_s) return;
    busiest_s = bytes / bytes_per_s;
    report.bottleneck.link = name;
  };
  std::vector<double> sent(platform.sites.size(), 0.0), received(sent);
  std::vector<double> carried(platform.shared_links.size(), 0.0);
  for (const auto& [pair, bytes] : per_round.bytes) {
    sent[static_cast<std::size_t>(pair.first)] += bytes;
    received[static_cast<std::size_t>(pair.second)] += bytes;
    for (const int link : platform.shared_by(pair.first, pair.second))
      carried[static_cast<std::size_t>(link)] += bytes;
  }
  for (std::size_t i = 0; i < platform.sites.size(); ++i) {
    const platforms::Site& site = platform.sites[i];
    consider("uplink of " + site.name, sent[i], site.uplink_bytes_per_s);
    consider("downlink of " + site.name, received[i], site.downlink_bytes_per_s);
  }
  for (std::size_t k = 0; k < carried.size(); ++k) {
    const platforms::SharedLink& link = platform.shared_links[k];
    if (!link.per_flow) consider(link.name, carried[k], link.bandwidth_bytes_per_s);
  }
  for (const auto& [pair, bytes] : per_round.bytes) {
    // If a path is as slow as a port, the report names the path, because its name contains both ends.
    const auto [from, to] = pair;
    const double busy_s = bytes / platform.path(from, to).bandwidth_bytes_per_s;
    if (busy_s == 0 || busy_s < busiest_s) continue;
    busiest_s = busy_s;
    report.bottleneck.link = "path " + platform.sites[static_cast<std::size_t>(from)].name + " to " +
                             platform.sites[static_cast<std::size_t>(to)].name;
  }
  if (report.bottleneck.link.empty()) report.bottleneck.link = "none: nothing is sent";
  report.bottleneck.link_busy_share = busiest_s / report.round.duration_s;
}

std::string short_text(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

void add_network_provenance(RunReport& report, const NetworkModel& network,
                            const platforms::Platform& platform) {
  const auto add = [&](const char* what, const std::string& key, const std::string& text) {
    if (key == "payload_rate" && !network.payload_rate_profile.empty())
      report.provenance.push_back({what, Origin::measured, text + " (" + network.payload_rate_profile + ")"});
    else if (is_calibrated(network, key))
      report.provenance.push_back({what, Origin::calibrated, text + "; fitted: " + network.calibration});
    else
      report.provenance.push_back({what, Origin::assumed, text});
  };
  const double efficiency = network.bandwidth_efficiency;
  add("bandwidth efficiency", "bandwidth_efficiency",
      efficiency == 1.0 && platform.payload_rates ? "1: the rates of the platform are those of payload"
      : efficiency == 1.0                         ? "1: payload uses the whole rate of every link"
                          : "payload uses " + short_text(efficiency) + " of the rate of every link");
  for (const NetworkTerm& term : switched_on(network)) add("network model", term.key, term.text);
}

// Durations of all rounds in the order of the plan. Empty if some rounds were not executed. Also empty if
// rounds overlap: the operation that ends last then need not belong to the last round.
std::vector<double> durations_of_all(const Plan& plan, const std::vector<Timeline>& timelines) {
  std::map<std::int64_t, double> by_round;
  for (const Timeline& timeline : timelines) {
    const std::vector<double> seconds = round_durations_s(timeline.round_end_s);
    for (std::size_t i = 0; i < seconds.size(); ++i) by_round[timeline.rounds[i]] = seconds[i];
  }
  std::vector<double> all;
  if (!in_turn(plan) || plan.classes.front().overlapping) return all;
  if (by_round.size() != static_cast<std::size_t>(plan.rounds) || by_round.size() > kListedRounds) return all;
  for (const auto& [round, seconds] : by_round) all.push_back(seconds);
  return all;
}

}  // namespace

RunReport report_frame(const Scenario& scenario, const Counts& counts, std::int64_t optimizer_steps) {
  RunReport report;
  report.notes = ignored_axes(scenario);
  report.optimizer_steps = optimizer_steps;
  report.tokens = optimizer_steps * scenario.workload.global_batch_sequences * scenario.model.sequence_length;
  for (int site = 0; site < scenario.sites(); ++site) {
    SiteReport row;
    row.name = scenario.platform.sites[static_cast<std::size_t>(site)].name;
    if (local_batch_sequences(scenario, site) > 0) row.memory_bytes = counts.at(site).bytes_per_site;
    report.sites.push_back(row);
  }
  report.flops_per_token = counts.flops_per_token;
  const std::vector<ComputeTimes> times = site_times(scenario, counts);
  if (const std::string note = fewer_connections(scenario); !note.empty())
    report.notes.push_back(note);
  else if (const std::string more = more_connections(scenario.platform, scenario.network); !more.empty())
    report.notes.push_back(more);
  if (const std::string note = unequal_steps(scenario, times); !note.empty()) report.notes.push_back(note);
  report.efficiency = run_efficiency(scenario, times);
  report.provenance = compute_provenance(scenario, times);
  report.provenance.insert(report.provenance.end(), scenario.platform.provenance.begin(),
                           scenario.platform.provenance.end());
  const StepVariation& variation = scenario.variation;
  if (variation.varies())
    report.provenance.push_back(
        {"step time variation", variation.from_samples ? Origin::measured : Origin::assumed,
         variation.from_samples ? "drawn from the profile's samples"
                                : "drawn from the distribution given in the scenario"});
  add_network_provenance(report, scenario.network, scenario.platform);
  report.provenance.push_back({"bytes sent", Origin::computed, "from the model's shape and the plan"});
  report.provenance.push_back(memory_provenance(counts.fullest_site().model, counts.fullest_site().load));
  report.memory_problem = memory_problem(scenario, counts);
  report.warnings = warnings_about(scenario);
  constexpr double kDoubtedMfu = 0.75;
  if (report.efficiency && report.efficiency->mfu > kDoubtedMfu)
    report.warnings.push_back(
        "the steps have an MFU of " + short_text(std::round(100 * report.efficiency->mfu)) +
        " %, more than published trainings reach (20 to 60 %): the step time has to be that of "
        "all GPUs of a site with its whole batch");
  return report;
}

void finish_report(RunReport& report) {
  const auto sites = static_cast<double>(report.sites.size());
  const auto rounds = static_cast<double>(report.round.count);
  MeanRound& round = report.round;
  round.compute_s = round.exposed_communication_s = round.idle_s = round.upkeep_s = 0;
  double sent = 0;
  for (const SiteReport& site : report.sites) {
    round.compute_s += site.compute_s / sites;
    round.exposed_communication_s += site.exposed_communication_s / sites;
    round.idle_s += site.idle_s / sites;
    round.upkeep_s += site.upkeep_s / sites;
    sent += site.bytes_sent;
  }
  if (round.transferring_s > 0)
    round.overlap_achieved = std::max(0.0, 1 - round.exposed_communication_s / round.transferring_s);
  report.compute_utilization = round.compute_s * rounds / report.wall_clock_s;
  report.tokens_per_s = static_cast<double>(report.tokens) / report.wall_clock_s;
  if (report.efficiency)
    report.efficiency->run_mfu =
        model_flops_utilisation(report.flops_per_token, report.tokens_per_s, report.efficiency->peak_flops);
  report.bytes_per_token = sent / static_cast<double>(report.tokens);
  report.bytes_sent_per_site_per_round = sent / sites / rounds;
  report.bottleneck.limited_by =
      round.compute_s >= round.exposed_communication_s ? "compute" : "communication";
}

namespace {

constexpr std::size_t kMostWithDestinations = 1024;  // sites

// Adds up mean rounds to the totals of a run.
class Totals {
 public:
  Totals(RunReport& report, const Plan& plan) : report_(report), plan_(plan) {}

  /// `count` rounds of the run have these means.
  void add(const ClassMean& means, double count) {
    const auto rounds = static_cast<double>(plan_.rounds);
    report_.wall_clock_s += means.total_s;
    variance_s2_ += means.variance_s2;
    if (means.variance_s2 > 0)
      squares_s4_ += means.variance_s2 * means.variance_s2 / static_cast<double>(means.sampled_rounds - 1);
    report_.round.communication_s += means.communication_s * count / rounds;
    report_.round.transferring_s += means.transferring_s * count / rounds;
    for (std::size_t s = 0; s < report_.sites.size(); ++s) {
      report_.sites[s].compute_s += means.compute_s[s] * count / rounds;
      report_.sites[s].exposed_communication_s += means.exposed_s[s] * count / rounds;
    }
    for (const auto& [nodes, mean_bytes] : means.sent.bytes) {
      const int from = plan_.nodes[static_cast<std::size_t>(nodes.first)].site,
                to = plan_.nodes[static_cast<std::size_t>(nodes.second)].site;
      if (from == to) continue;  // stays inside the site
      const double bytes = mean_bytes * count;
      // A store is behind the last site.
      const auto sender = static_cast<std::size_t>(from), receiver = static_cast<std::size_t>(to);
      (sender < report_.sites.size() ? report_.sites[sender].bytes_sent : report_.store->bytes_sent) += bytes;
      (receiver < report_.sites.size() ? report_.sites[receiver].bytes_received
                                       : report_.store->bytes_received) += bytes;
      // Only sites have prices by destination: what goes to or comes from a store has none.
      if (sender < report_.sites.size() && report_.sites.size() <= kMostWithDestinations) {
        std::vector<double>& by_destination = report_.sites[sender].bytes_sent_to;
        by_destination.resize(report_.sites.size());
        if (receiver < report_.sites.size()) by_destination[receiver] += bytes;
      }
      per_round_.add(from, to, bytes / rounds);
    }
  }

  /// The 95 % interval of the wall clock. `doubt_s` is an error that is not random.
  void set_interval(double doubt_s) {
    double half_s = doubt_s;
    if (variance_s2_ > 0) {
      // Welch and Satterthwaite: a sum of estimated variances vᵢ has (Σ vᵢ)² ÷ Σ vᵢ²/(nᵢ − 1) degrees of
      // freedom.
      const double freedom = variance_s2_ * variance_s2_ / squares_s4_;
      half_s += student_t(std::max<std::int64_t>(1, std::llround(freedom))) * std::sqrt(variance_s2_);
    }
    if (half_s > 1e-6 * report_.wall_clock_s)  // no interval if the sampled rounds did not differ
      report_.wall_clock_interval_s =
          Interval95{std::max(0.0, report_.wall_clock_s - half_s), report_.wall_clock_s + half_s};
  }

  /// Sets what follows from the totals.
  void finish(const Scenario& scenario) {
    // Means of a few rounds may be a little shorter than the run. No site computes longer than the run lasts.
    for (const SiteReport& site : report_.sites)
      report_.wall_clock_s =
          std::max(report_.wall_clock_s, site.compute_s * static_cast<double>(plan_.rounds));
    report_.round.duration_s = report_.wall_clock_s / static_cast<double>(plan_.rounds);
    for (SiteReport& site : report_.sites)
      site.idle_s = std::max(0.0, report_.round.duration_s - site.compute_s - site.exposed_communication_s);
    finish_report(report_);
    find_busiest_link(
        report_, platform_of_connections(platforms::with_store_as_site(scenario.platform), scenario.network),
        per_round_);
    add_cost(report_, scenario);
    add_quality(report_, scenario);
    add_goodput(report_, scenario);
  }

 private:
  RunReport& report_;
  const Plan& plan_;
  PairBytes per_round_;
  double variance_s2_ = 0;
  double squares_s4_ = 0;  // Σ vᵢ²/(nᵢ − 1)
};

/// The position of the round whose duration is nearest to the median, the last one of several. The last one
/// of overlapping rounds empties the pipeline, so one from the middle is representative. Long measured runs
/// keep the operations of their last rounds only, and one of these is chosen.
std::size_t typical_round(const Timeline& timeline, const RoundClass& kind) {
  const std::size_t executed = timeline.rounds.size();
  if (kind.overlapping) return executed > 3 ? executed - 3 : executed - 1;
  // It stands for those that are missing.
  if (kind.identical && static_cast<std::int64_t>(executed) < kind.count) return executed - 1;
  const std::vector<double> seconds = round_durations_s(timeline.round_end_s);
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const double median_s = sorted[executed / 2];
  std::size_t typical = executed - 1;
  for (std::size_t i = executed; i-- > 0;) {
    if (timeline.op_names[i].empty()) continue;
    const double off_s = std::abs(seconds[i] - median_s);
    if (off_s < std::abs(seconds[typical] - median_s) - 1e-9 * median_s) typical = i;
  }
  return typical;
}

/// Requests to the store in all rounds of a class. Rounds with other owners of experts have other numbers of
/// objects: of many such rounds, some that lie evenly among them are counted.
double requests_of(const Plan& plan, const RoundClass& kind) {
  constexpr std::int64_t kAllOf = 32, kSome = 8;
  const std::int64_t counted = kind.identical ? 1 : kind.count <= kAllOf ? kind.count : kSome;
  double requests = 0;
  for (std::int64_t i = 0; i < counted; ++i)
    requests += store_requests(plan.nodes, plan.round(kind.round_at(i * kind.count / counted)));
  return requests * static_cast<double>(kind.count) / static_cast<double>(counted);
}

RunReport new_report(const Scenario& scenario, const Plan& plan) {
  RunReport report = report_frame(scenario, counts_of(scenario), plan.steps);
  report.notes.insert(report.notes.begin(), plan.notes.begin(), plan.notes.end());
  report.round.count = plan.rounds;
  const bool store = std::any_of(plan.nodes.begin(), plan.nodes.end(),
                                 [](const Node& node) { return node.kind == NodeKind::store; });
  if (!store) return report;
  report.store.emplace();
  for (const RoundClass& kind : plan.classes) report.store->requests += requests_of(plan, kind);
  return report;
}

}  // namespace

RunReport assemble_report(const Scenario& scenario, const Plan& plan,
                          const std::vector<Timeline>& timelines) {
  RunReport report = new_report(scenario, plan);
  Totals totals(report, plan);
  std::size_t longest = 0;  // class whose rounds take most of the time
  double longest_s = 0;
  for (std::size_t c = 0; c < plan.classes.size(); ++c) {
    const ClassMean means = class_mean(plan, report.sites.size(), plan.classes[c], timelines[c]);
    totals.add(means, static_cast<double>(plan.classes[c].count));
    if (means.total_s > longest_s) longest = c;
    longest_s = std::max(longest_s, means.total_s);
  }
  totals.set_interval(0);
  if (longest < timelines.size() && !timelines[longest].rounds.empty()) {
    report.critical_path = critical_path(plan, report.sites, timelines[longest],
                                         typical_round(timelines[longest], plan.classes[longest]));
    if (plan.rounds - plan.classes[longest].count > 1)  // more than one round, so not only a shorter last one
      report.notes.push_back(
          "there are " + std::to_string(plan.classes.size()) +
          " kinds of rounds; the critical path is that of the kind with the longest total time, " +
          std::to_string(plan.classes[longest].count) + " of " + std::to_string(plan.rounds) + " rounds");
  }
  report.round_durations_s = durations_of_all(plan, timelines);
  for (std::size_t c = 0; c < timelines.size(); ++c) {
    const std::vector<std::int64_t>& rounds = timelines[c].rounds;
    if (!plan.classes[c].overlapping && !rounds.empty() && rounds.front() == 0)
      report.round.first_duration_s = timelines[c].round_end_s.front();
  }
  add_attendance(report, plan, timelines);
  totals.finish(scenario);
  return report;
}

RunReport assemble_report(const Scenario& scenario, const Plan& plan, const std::vector<RoundSample>& samples,
                          double doubt_s) {
  RunReport report = new_report(scenario, plan);
  Totals totals(report, plan);
  const RoundSample* longest = nullptr;  // sample that represents most of the time
  double longest_s = 0;
  for (const RoundSample& sample : samples) {
    const ClassMean means = sample_mean(plan, report.sites.size(), sample);
    totals.add(means, sample.count);
    if (longest != nullptr && means.total_s <= longest_s) continue;
    longest = &sample;
    longest_s = means.total_s;
  }
  totals.set_interval(doubt_s);
  if (longest != nullptr)
    report.critical_path = critical_path(plan, report.sites, longest->timeline, longest->last - 1);
  add_attendance(report, plan, samples);
  totals.finish(scenario);
  return report;
}

}  // namespace fomoe::costmodel
