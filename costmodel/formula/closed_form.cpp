#include "costmodel/formula/closed_form.hpp"

#include "costmodel/compute/step_variation.hpp"
#include "costmodel/formula/own_pace_times.hpp"
#include "costmodel/formula/sent_to.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/timeline/report_assembly.hpp"
#include "costmodel/value/cost.hpp"
#include "costmodel/value/goodput.hpp"
#include "costmodel/value/quality.hpp"

namespace fomoe::costmodel {

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

ComputeTimes slowest_times(const Scenario& scenario, const Resolved& resolved) {
  const int site = static_cast<int>(resolved.times.slowest);
  ComputeTimes times = site_compute_times(scenario, site);
  times.slow_down(scenario.platform.sites[resolved.times.slowest].compute_factor *
                  (scenario.variation.from_samples ? 1 : expected_step_factor(scenario.variation)));
  return times;
}

RunReport closed_form(const Scenario& scenario) {
  const Resolved resolved = resolve(scenario);
  const PlanSummary& plan = resolved.plan;
  const RoundTimes& round = resolved.times.round;

  RunReport report = report_frame(scenario, resolved.counts, static_cast<std::int64_t>(plan.steps));
  report.executor = "closed-form";
  const std::vector<std::string> notes = approximations(scenario, resolved);
  report.notes.insert(report.notes.end(), notes.begin(), notes.end());

  report.round.count = static_cast<std::int64_t>(plan.rounds);
  report.round.duration_s = round.duration_s;
  report.round.communication_s = report.round.transferring_s = round.communication_s;
  for (int site = 0; site < scenario.sites(); ++site) {
    SiteReport& row = report.sites[static_cast<std::size_t>(site)];
    const std::size_t known = resolved.counts.alike ? 0 : static_cast<std::size_t>(site);
    const double sequences = sequences_of_work(scenario, site);
    if (sequences > 0) {
      const SiteSeconds& seconds = resolved.times.sites[known];
      const bool many = sequences == resolved.counts.sites[known].many;
      row.compute_s = round_compute_s(plan, many ? seconds.many : seconds.few, seconds.outer_step_s);
    }
    row.exposed_communication_s = round.exposed_s;
    row.idle_s = round.slowest_compute_s + round.waiting_s - row.compute_s;
    const RoundBytes bytes = round_bytes(resolved, site);
    row.bytes_sent = plan.rounds * bytes.sent;
    row.bytes_received = plan.rounds * bytes.received;
    if (!resolved.own_pace) continue;
    const OwnPaceSite own = own_pace_site(resolved, site);
    row.compute_s = own.compute_s;
    row.exposed_communication_s = own.exposed_s;
    row.idle_s = round.duration_s - own.compute_s - own.exposed_s;
    row.bytes_sent = own.bytes_sent;
    row.bytes_received = own.bytes_received;
  }
  for (int site = 0; site < scenario.sites() && egress_by_destination(scenario.prices); ++site) {
    SiteReport& row = report.sites[static_cast<std::size_t>(site)];
    row.bytes_sent_to = sent_to(resolved, site, row.bytes_sent);
  }
  if (plan.store_requests() > 0) report.store = store_use(plan, scenario.sites());
  report.wall_clock_s = resolved.wall_clock_s();
  finish_report(report);
  const BusyPort busiest = busiest_port(resolved);
  report.bottleneck.link = busiest.share == 0
                               ? "none: nothing is sent"
                               : (busiest.uplink ? "uplink of " : "downlink of ") +
                                     scenario.platform.sites[static_cast<std::size_t>(busiest.site)].name;
  report.bottleneck.link_busy_share = busiest.share;
  add_cost(report, scenario);
  add_quality(report, scenario);
  add_goodput(report, scenario);
  return report;
}

}  // namespace fomoe::costmodel
