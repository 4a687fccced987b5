#include "costmodel/closed_form.hpp"

#include <algorithm>

#include "costmodel/memory.hpp"
#include "costmodel/methods/method.hpp"
#include "costmodel/report_assembly.hpp"

namespace fomoe::costmodel {

namespace {

struct SlowestLinks {
  double port_bytes_per_s = platforms::kUnlimited;
  double path_bytes_per_s = platforms::kUnlimited;
  double latency_s = 0;
  std::string port = "uplink of every site";
};

// The formula knows one kind of site. Where sites differ it takes the slowest of everything: exact for equal
// sites, pessimistic otherwise.
SlowestLinks slowest_links(const platforms::Platform& platform) {
  SlowestLinks slowest;
  for (int i = 0; i < platform.size(); ++i) {
    const platforms::Site& site = platform.sites[static_cast<std::size_t>(i)];
    if (site.uplink_bytes_per_s < slowest.port_bytes_per_s) {
      slowest.port_bytes_per_s = site.uplink_bytes_per_s;
      slowest.port = "uplink of " + site.name;
    }
    if (site.downlink_bytes_per_s < slowest.port_bytes_per_s) {
      slowest.port_bytes_per_s = site.downlink_bytes_per_s;
      slowest.port = "downlink of " + site.name;
    }
    for (int j = 0; j < platform.size(); ++j) {
      if (i == j) continue;
      slowest.path_bytes_per_s =
          std::min(slowest.path_bytes_per_s, platform.path(i, j).bandwidth_bytes_per_s);
      slowest.latency_s = std::max(slowest.latency_s, platform.path(i, j).latency_s);
    }
  }
  return slowest;
}

// t = hops · latency + max(bytes ÷ port, bytes of the busiest pair ÷ path)
double stage_s(const Stage<double>& stage, const SlowestLinks& links) {
  return stage.latency_hops * links.latency_s +
         std::max(stage.bytes / links.port_bytes_per_s, stage.pair_bytes / links.path_bytes_per_s);
}

}  // namespace

RunReport closed_form(const Scenario& scenario) {
  const PlanSummary summary = summarise(scenario);
  const SlowestLinks links =
      slowest_links(platforms::scaled_bandwidth(scenario.platform, scenario.network.bandwidth_efficiency));
  const double rounds = summary.rounds;
  const double steps_per_round = summary.steps / rounds;

  RunReport report = report_frame(scenario, static_cast<std::int64_t>(summary.steps));
  report.executor = "closed-form";
  double slowest_compute_s = 0;  // of the mean round
  for (int site = 0; site < scenario.sites(); ++site) {
    const ComputeTimes times =
        compute_times(scenario, static_cast<double>(local_batch_sequences(scenario, site)));
    SiteReport& row = report.sites[static_cast<std::size_t>(site)];
    row.compute_s = steps_per_round * (summary.compute_factor * times.gradients_s +
                                       summary.optimizer_factor * times.optimizer_s) +
                    summary.outer_steps_per_round * times.outer_step_s;
    row.bytes_sent = row.bytes_received = rounds * summary.sent.total();
    slowest_compute_s = std::max(slowest_compute_s, row.compute_s);
  }
  const ComputeTimes times = compute_times(scenario, static_cast<double>(local_batch_sequences(scenario, 0)));
  const double waiting_s = steps_per_round * summary.idle_factor * times.gradients_s;
  double communication_s = 0, exposed_s = 0;
  for (int i = 0; i < summary.stage_count; ++i) {
    const Stage<double>& stage = summary.stages[static_cast<std::size_t>(i)];
    const double duration_s = stage_s(stage, links);
    communication_s += stage.times_per_round * duration_s;
    const double hidden_s = stage.hidden_steps * times.step_s() + stage.hidden_forwards * times.forward_s +
                            stage.hidden_backwards * times.backward_s();
    exposed_s += stage.times_per_round * std::max(0.0, duration_s - hidden_s);
  }

  report.round.count = static_cast<std::int64_t>(rounds);
  report.round.duration_s = slowest_compute_s + waiting_s + exposed_s;
  report.round.communication_s = communication_s;
  for (SiteReport& row : report.sites) {
    row.exposed_communication_s = exposed_s;
    row.idle_s = slowest_compute_s - row.compute_s + waiting_s;
  }
  report.wall_clock_s = rounds * report.round.duration_s;
  finish_report(report);
  report.bottleneck.link = links.port;
  report.bottleneck.link_busy_share = summary.sent.total() / links.port_bytes_per_s / report.round.duration_s;
  return report;
}

}  // namespace fomoe::costmodel
