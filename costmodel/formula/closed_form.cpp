#include "costmodel/formula/closed_form.hpp"

#include <algorithm>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/compute/site_times.hpp"
#include "costmodel/compute/step_variation.hpp"
#include "costmodel/formula/approximations.hpp"
#include "costmodel/formula/closed_form_parts.hpp"
#include "costmodel/formula/round_times.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/timeline/report_assembly.hpp"
#include "costmodel/value/cost.hpp"
#include "costmodel/value/goodput.hpp"
#include "costmodel/value/quality.hpp"

namespace fomoe::costmodel {

namespace {

// The slowest port of the platform, by name.
std::string slowest_port(const platforms::Platform& platform) {
  std::string port = "uplink of every site";
  double slowest = platforms::kUnlimited;
  const auto consider = [&](const char* direction, const std::string& site, double bytes_per_s) {
    if (bytes_per_s >= slowest) return;
    slowest = bytes_per_s;
    port = direction + site;
  };
  for (const platforms::Site& site : platform.sites) {
    consider("uplink of ", site.name, site.uplink_bytes_per_s);
    consider("downlink of ", site.name, site.downlink_bytes_per_s);
  }
  return port;
}

ComputeTimes times_of(const Scenario& scenario, int site) {
  ComputeTimes times = site_compute_times(scenario, site);
  times.slow_down(scenario.platform.sites[static_cast<std::size_t>(site)].compute_factor *
                  (scenario.variation.from_samples ? 1 : expected_step_factor(scenario.variation)));
  return times;
}

}  // namespace

ClosedFormParts closed_form_parts(const Scenario& scenario) {
  const platforms::Platform platform = effective_platform(scenario.platform, scenario.network);
  int slowest = 0;
  ComputeTimes slowest_times = times_of(scenario, 0);
  for (int site = 1; site < scenario.sites(); ++site) {
    if (local_batch_sequences(scenario, site) == 0) continue;
    const ComputeTimes times = times_of(scenario, site);
    if (times.step_s() <= slowest_times.step_s()) continue;
    slowest = site;
    slowest_times = times;
  }
  ClosedFormParts parts{summarise(scenario),
                        link_sets(scenario, platform),
                        slowest_port(platform),
                        slowest,
                        slowest_times,
                        {},
                        true,
                        {}};
  parts.represents_sites = represents_sites(scenario, parts.summary, parts.links.all);
  parts.round = round_times(parts.summary, parts.links, slowest_times.parts(), slowest_times.outer_step_s);
  const double updates_s =
      updates_after_transfers_s(parts.summary, scenario.strategy.method->every_step,
                                slowest_times.parts().optimizer_s, slowest_times.outer_step_s);
  parts.approximations =
      approximations(scenario, parts.summary, parts.links.all, updates_s, parts.round.duration_s);
  return parts;
}

double closed_form_wall_clock_s(const Scenario& scenario) {
  const ClosedFormParts parts = closed_form_parts(scenario);
  return parts.summary.rounds * parts.round.duration_s;
}

RunReport closed_form(const Scenario& scenario) {
  const ClosedFormParts parts = closed_form_parts(scenario);
  const PlanSummary& summary = parts.summary;
  const double rounds = summary.rounds;

  RunReport report = report_frame(scenario, static_cast<std::int64_t>(summary.steps));
  report.executor = "closed-form";
  report.notes.insert(report.notes.end(), parts.approximations.begin(), parts.approximations.end());
  const RoundTimes& round = parts.round;

  report.round.count = static_cast<std::int64_t>(rounds);
  report.round.duration_s = round.duration_s;
  report.round.communication_s = report.round.transferring_s = round.communication_s;
  for (int site = 0; site < scenario.sites(); ++site) {
    SiteReport& row = report.sites[static_cast<std::size_t>(site)];
    if (local_batch_sequences(scenario, site) > 0) {
      const ComputeTimes times = times_of(scenario, site);
      row.compute_s = round_compute_s(summary, times.parts(), times.outer_step_s);
    }
    row.exposed_communication_s = round.exposed_s;
    row.idle_s = round.slowest_compute_s + round.waiting_s - row.compute_s;
    row.bytes_sent = row.bytes_received = rounds * summary.sent.total();
  }
  report.wall_clock_s = rounds * report.round.duration_s;
  finish_report(report);
  report.bottleneck.link = parts.port;
  report.bottleneck.link_busy_share =
      summary.sent.total() / parts.links.all.port_bytes_per_s() / report.round.duration_s;
  add_cost(report, scenario);
  add_quality(report, scenario);
  add_goodput(report, scenario);
  return report;
}

}  // namespace fomoe::costmodel
