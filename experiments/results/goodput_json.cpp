#include "experiments/results/goodput_json.hpp"

#include "experiments/results/json_values.hpp"

namespace fomoe::scenario {
namespace {

Json spread_json(const costmodel::Spread& spread) {
  return {{"mean", spread.mean},
          {"p5", spread.p5},
          {"p50", spread.p50},
          {"p95", spread.p95},
          {"mean_95_percent", {spread.mean_low, spread.mean_high}}};
}

}  // namespace

void add_failures(Json& json, const costmodel::Scenario& scenario) {
  if (!scenario.failures) return;
  const costmodel::Failures& failures = *scenario.failures;
  Json entry = members_json(
      "failures", scenario,
      {"site_mtbf_s", "link_mtbf_s", "preemptions_per_s", "detection_s", "restart_s", "link_repair_s"});
  for (const costmodel::Outage& outage : failures.outages)
    entry["outages"].push_back({{"site", scenario.platform.sites[static_cast<std::size_t>(outage.site)].name},
                                {"start_s", outage.start_s},
                                {"duration_s", outage.duration_s}});
  for (std::size_t site = 0; site < failures.sites.size(); ++site) {
    const costmodel::SiteFailures& own = failures.sites[site];
    entry["sites"].push_back({{"site", scenario.platform.sites[site].name},
                              {"site_mtbf_s", finite(own.site_mtbf_s)},
                              {"link_mtbf_s", finite(own.link_mtbf_s)},
                              {"preemptions_per_s", own.preemptions_per_s},
                              {"detection_s", own.detection_s},
                              {"restart_s", own.restart_s}});
  }
  json["failures"] = entry;
}

void add_attendance(Json& json, const costmodel::RunReport& report) {
  if (!report.attendance) return;
  json["attendance"] = {{"missed_rounds_per_site", report.attendance->missed_rounds},
                        {"trained_share", report.attendance->trained_share},
                        {"added_rounds", report.attendance->added_rounds},
                        {"repeated_rounds", report.attendance->repeated_rounds}};
}

void add_goodput(Json& json, const costmodel::RunReport& report) {
  if (!report.goodput) return;
  const costmodel::Goodput& goodput = *report.goodput;
  Json entry = {{"policy", goodput.own_pace ? "own_pace" : to_string(goodput.policy)},
                {"samples", goodput.samples},
                {"goodput", goodput.goodput},
                {"unfinished_share", goodput.unfinished_share},
                {"finish_p50_s", finite(goodput.finish_p50_s)},
                {"finish_p95_s", finite(goodput.finish_p95_s)}};
  if (goodput.cost_p50) entry["cost_p50"] = *goodput.cost_p50;
  if (goodput.cost_p95) entry["cost_p95"] = *goodput.cost_p95;
  if (goodput.energy_p50_kwh) entry["energy_p50_kwh"] = *goodput.energy_p50_kwh;
  entry["system_mtbf_s"] = finite(goodput.system_mtbf_s);
  if (!goodput.own_pace) {  // otherwise nobody waits for checkpoints, or for a site
    entry["checkpoint_s"] = goodput.checkpoint_s;
    entry["checkpoint_rounds"] = goodput.checkpoint_rounds;
  }
  entry["transfer_s"] = goodput.transfer_s;
  json["goodput"] = entry;
  if (goodput.own_pace) return;
  if (goodput.policy == costmodel::FailurePolicy::drop) entry["timeout_s"] = goodput.timeout_s;
  entry["young_interval_s"] = finite(goodput.young_interval_s);
  entry["daly_interval_s"] = finite(goodput.daly_interval_s);
  entry["recommended_checkpoint_rounds"] = goodput.recommended_rounds;
  entry["recommended_goodput"] = goodput.recommended_goodput;
  entry["recommended_timeout_s"] = goodput.recommended_timeout_s;
  json["goodput"] = entry;
}

void add_replicas(Json& json, const costmodel::RunReport& report) {
  if (!report.replicas) return;
  const costmodel::Replicas& replicas = *report.replicas;
  json["replicas"] = {{"count", replicas.count},
                      {"first_seed", replicas.first_seed},
                      {"wall_clock_s", spread_json(replicas.wall_clock_s)},
                      {"compute_utilization", spread_json(replicas.compute_utilization)}};
}

}  // namespace fomoe::scenario
