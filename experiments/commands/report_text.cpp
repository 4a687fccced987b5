#include <fmt/format.h>

#include "costmodel/flops.hpp"
#include "costmodel/model_shape.hpp"
#include "experiments/commands/execute.hpp"
#include "experiments/commands/human.hpp"

namespace fomoe::commands {
namespace {

std::string title(const costmodel::RunReport& report, const costmodel::Scenario& scenario) {
  const costmodel::Strategy& strategy = scenario.strategy;
  const auto parameters = static_cast<double>(costmodel::count_parameters(scenario.model).total());
  return fmt::format(
      "{} on {} sites of platform {}\n"
      "model {} with {} parameters; {} tokens in {} optimiser steps, {} rounds\n"
      "overlap O_e = {}, {} placement{}, {} collective, {} on the wire\n\n",
      strategy.method, scenario.sites(), scenario.platform.name, scenario.model.name, human_count(parameters),
      human_count(static_cast<double>(report.tokens)), report.optimizer_steps, report.round.count,
      costmodel::effective_overlap(scenario), to_string(strategy.placement),
      strategy.skip_token ? ", skip-token" : "", to_string(strategy.collective),
      to_string(strategy.wire.type));
}

/// The mean round times the number of rounds: shares of the wall clock.
std::string shares(const costmodel::RunReport& report) {
  const auto rounds = static_cast<double>(report.round.count);
  const auto row = [&](const char* name, double per_round_s) {
    return Row{name, human_time(per_round_s * rounds), human_percent(per_round_s / report.round.duration_s),
               human_time(per_round_s) + " a round"};
  };
  return aligned(
      {{"wall clock", human_time(report.wall_clock_s), "", human_time(report.round.duration_s) + " a round"},
       row("  compute", report.round.compute_s),
       row("  exposed communication", report.round.exposed_communication_s),
       row("  idle", report.round.idle_s)});
}

std::string sites(const costmodel::RunReport& report) {
  const auto rounds = static_cast<double>(report.round.count);
  std::vector<Row> rows = {{"site, a round", "sent", "received", "compute", "exposed", "idle"}};
  for (const costmodel::SiteReport& site : report.sites) {
    rows.push_back({site.name, human_bytes(site.bytes_sent / rounds),
                    human_bytes(site.bytes_received / rounds), human_time(site.compute_s),
                    human_time(site.exposed_communication_s), human_time(site.idle_s)});
  }
  return aligned(rows);
}

std::string network_terms(const costmodel::NetworkModel& network) {
  std::string text;
  for (const std::string& term : costmodel::switched_on(network)) text += (text.empty() ? "" : "; ") + term;
  return text.empty() ? "no cap on a flow, no slow start, no loss, no jitter, no other traffic" : text;
}

}  // namespace

bool waits_for_latency(const costmodel::RunReport& report) {
  const double waiting = report.round.exposed_communication_s / report.round.duration_s;
  return waiting >= 0.005 && report.bottleneck.link_busy_share < waiting / 2;
}

std::string waiting_text(const costmodel::RunReport& report) {
  const double waiting = report.round.exposed_communication_s / report.round.duration_s;
  const std::string text = fmt::format("waits for the network {} of the time", human_percent(waiting));
  if (waiting < 0.005) return text;
  return text + fmt::format(", mostly for {} (the busiest link, {}, is {} busy)",
                            waits_for_latency(report) ? "latency" : "bandwidth", report.bottleneck.link,
                            human_percent(report.bottleneck.link_busy_share));
}

std::string report_text(const costmodel::RunReport& report, const costmodel::Scenario& scenario) {
  const bool simulated = report.executor == "simulated";
  std::string text = title(report, scenario) + shares(report) + '\n';
  text += aligned({{"compute utilisation", human_percent(report.compute_utilization)},
                   {"throughput", human_count(report.tokens_per_s) + " tokens/s"},
                   {"sent per site per round", human_bytes(report.bytes_sent_per_site_per_round)},
                   {"sent per token", human_bytes(report.bytes_per_token)},
                   {"memory per site, without activations", human_bytes(report.sites.front().memory_bytes)}});
  text += fmt::format("\nlimited by {}; {}\n\n", report.bottleneck.limited_by, waiting_text(report));
  if (report.sites.size() <= 16) text += sites(report) + '\n';
  text += human_provenance(report.provenance);
  text +=
      fmt::format("\nNetwork: bandwidth_efficiency {}; {}\n", scenario.network.bandwidth_efficiency,
                  simulated ? "fluid flows, max-min fair shares; " + network_terms(scenario.network)
                            : "the slowest uplink, downlink and path and the longest latency stand for all");
  text += fmt::format("Executor: {}\n", report.executor);
  for (const std::string& note : report.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

std::string csv_header() {
  return "executor,method,sites,local_steps,expert_overlap,wall_clock_s,compute_utilization,tokens_per_s,"
         "bytes_per_token,bytes_sent_per_site_per_round,memory_bytes_per_site,optimizer_steps,tokens,round_"
         "count,"
         "round_duration_s,round_compute_s,round_communication_s,round_exposed_communication_s,round_idle_s,"
         "limited_by,busiest_link,link_busy_share";
}

std::string csv_row(const costmodel::RunReport& report, const costmodel::Scenario& scenario) {
  const costmodel::MeanRound& round = report.round;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", report.executor,
                     scenario.strategy.method, scenario.sites(), scenario.strategy.local_steps,
                     costmodel::effective_overlap(scenario), report.wall_clock_s, report.compute_utilization,
                     report.tokens_per_s, report.bytes_per_token, report.bytes_sent_per_site_per_round,
                     report.sites.front().memory_bytes, report.optimizer_steps, report.tokens, round.count,
                     round.duration_s, round.compute_s, round.communication_s, round.exposed_communication_s,
                     round.idle_s, report.bottleneck.limited_by, csv_cell(report.bottleneck.link),
                     report.bottleneck.link_busy_share);
}

}  // namespace fomoe::commands
