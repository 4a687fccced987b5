#include "experiments/output/report_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/counts/memory.hpp"
#include "costmodel/inputs/model_shape.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/report/report_fields.hpp"
#include "costmodel/value/cost.hpp"
#include "experiments/analysis/envelope.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/output/goodput_text.hpp"
#include "experiments/output/quality_text.hpp"
#include "experiments/results/possible_numbers.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::commands {
namespace {

/// How the experts of a layer are dealt out if sites do not hold equally many.
std::string experts_of_sites(const costmodel::Scenario& scenario) {
  const costmodel::ExpertShares shares = costmodel::expert_shares(scenario);
  if (shares.fewest_of_layer() == shares.most_of_layer()) return "";
  return fmt::format(" ({} or {} of {} experts of a layer at a site)", shares.fewest_of_layer(),
                     shares.most_of_layer(), shares.experts);
}

std::string title(const costmodel::RunReport& report, const costmodel::Scenario& scenario) {
  const costmodel::Strategy& strategy = scenario.strategy;
  const auto parameters = static_cast<double>(costmodel::count_parameters(scenario.model).total());
  return fmt::format(
      "{} on {} sites of platform {}\n"
      "model {} with {} parameters; {} tokens in {} optimiser steps, {} rounds\n"
      "overlap O_e = {}{}, {} placement{}, {} collective, {} on the wire\n\n",
      strategy.method->name, scenario.sites(), scenario.platform.name, scenario.model.name,
      human_count(parameters), human_count(static_cast<double>(report.tokens)), report.optimizer_steps,
      report.round.count, costmodel::effective_overlap(scenario), experts_of_sites(scenario),
      to_string(strategy.placement), strategy.skip_token ? ", skip-token" : "",
      to_string(strategy.collective), to_string(strategy.wire.type));
}

/// The parts of the wall clock as shares. The time of a part is its time in the mean round, multiplied by the
/// number of rounds.
std::string shares(const costmodel::RunReport& report) {
  const auto rounds = static_cast<double>(report.round.count);
  const auto row = [&](const char* name, double per_round_s) {
    return Row{name, human_time(per_round_s * rounds), human_percent(per_round_s / report.round.duration_s),
               human_time(per_round_s) + " per round"};
  };
  const double first_s = report.round.first_duration_s;
  const bool apart = first_s > 0 && std::abs(first_s / report.round.duration_s - 1) > 0.005;
  std::vector<Row> parts = {
      {"wall clock", human_time(report.wall_clock_s), "", human_time(report.round.duration_s) + " per round"},
      row("  compute", report.round.compute_s),
      row("  exposed communication", report.round.exposed_communication_s),
      row("  idle", report.round.idle_s)};
  if (report.round.upkeep_s > 0) parts.push_back(row("  validation, checkpoints", report.round.upkeep_s));
  return aligned(parts) + (apart ? fmt::format("the first round takes {}\n", human_time(first_s)) : "");
}

/// "10 Gb/s", or "10 / 20 Gb/s" up and down; "" if neither limits.
std::string line_text(const platforms::Site& site) {
  const auto rate = [](double bytes_per_s) {
    if (!std::isfinite(bytes_per_s)) return std::string("unlimited");
    const double gigabits = bytes_per_s * 8e-9;
    return gigabits < 1 ? fmt::format("{:.4g} Mb/s", 1e3 * gigabits) : fmt::format("{:.4g} Gb/s", gigabits);
  };
  const std::string up = rate(site.uplink_bytes_per_s), down = rate(site.downlink_bytes_per_s);
  return up == down ? up : up + " up, " + down + " down";
}

std::string sites(const costmodel::RunReport& report, const costmodel::Scenario& scenario) {
  const auto rounds = static_cast<double>(report.round.count);
  std::vector<Row> rows = {{"site, per round", "sent", "received", "compute", "exposed", "idle", "line"}};
  for (std::size_t i = 0; i < report.sites.size(); ++i) {
    const costmodel::SiteReport& site = report.sites[i];
    rows.push_back({site.name, human_bytes(site.bytes_sent / rounds),
                    human_bytes(site.bytes_received / rounds), human_time(site.compute_s),
                    human_time(site.exposed_communication_s), human_time(site.idle_s),
                    i < scenario.platform.sites.size() ? line_text(scenario.platform.sites[i]) : ""});
  }
  return aligned(rows);
}

/// The parts of the round on its critical path in time order; at most the five longest.
std::string critical_path_text(const costmodel::RunReport& report) {
  std::string text;
  if (report.wall_clock_interval_s) {
    text += fmt::format(
        "95 % confidence interval of the wall clock: {} to {} (rounds differ, and only some were executed)\n",
        human_time(report.wall_clock_interval_s->low), human_time(report.wall_clock_interval_s->high));
  }
  if (report.wall_clock_range_s)
    text +=
        fmt::format("simulated several times with small delays: wall clock {} to {}\n",
                    human_time(report.wall_clock_range_s->low), human_time(report.wall_clock_range_s->high));
  if (report.round.overlap_achieved > 0.005)
    text += fmt::format("{} of the transfer time overlaps with compute\n",
                        human_percent(report.round.overlap_achieved));
  std::vector<costmodel::CriticalStep> steps = report.critical_path;
  if (steps.size() > 5) {
    std::stable_sort(steps.begin(), steps.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    steps.resize(5);
  }
  for (const costmodel::CriticalStep& step : steps) {
    text += text.empty() || text.back() == '\n'
                ? (report.critical_path.size() > 5 ? "longest parts of a round's critical path: "
                                                   : "critical path of a round: ")
                : ", then ";
    text += fmt::format("{} ({}, {})", step.what, step.site, human_time(step.seconds));
  }
  return text.empty() ? text : text + "\n\n";
}

std::string cost_table(const costmodel::RunReport& report) {
  std::vector<Row> rows;
  const costmodel::Cost& cost = *report.cost;
  if (!cost.currency.empty()) {
    const auto row = [&](const char* name, double amount) {
      rows.push_back({name, human_money(amount, cost.currency),
                      cost.cost_total > 0 ? human_percent(amount / cost.cost_total) : ""});
    };
    rows.push_back({"cost", human_money(cost.cost_total, cost.currency),
                    cost.as_of.empty() ? "prices without a date" : "prices of " + cost.as_of});
    row("  GPUs", cost.gpu_cost);
    row("  egress", cost.egress_cost);
    row("  ports", cost.port_cost);
    row("  electricity", cost.energy_cost);
    if (report.store) row("  store", cost.store_cost);
    if (report.goodput && report.goodput->cost_p50)
      rows.push_back({"cost with failures", human_money(*report.goodput->cost_p50, cost.currency),
                      fmt::format("median run; checkpoints, interruptions and repeated work take {} of it",
                                  human_money(std::max(0.0, *report.goodput->cost_p50 - cost.cost_total),
                                              cost.currency))});
  }
  if (cost.energy_kwh) rows.push_back({"energy", fmt::format("{:.4g} kWh", *cost.energy_kwh), ""});
  if (report.goodput && report.goodput->energy_p50_kwh)
    rows.push_back(
        {"energy with failures", fmt::format("{:.4g} kWh", *report.goodput->energy_p50_kwh), "median run"});
  return aligned(rows) + '\n';
}

std::string network_terms(const costmodel::NetworkModel& network) {
  std::string text;
  for (const costmodel::NetworkTerm& term : costmodel::switched_on(network))
    text += (text.empty() ? "" : "; ") + term.text;
  return text.empty()
             ? "ideal hosts: no headers, slow start, loss, jitter or other traffic; network_model.host=linux "
               "adds what an ordinary Linux host does"
             : text;
}

}  // namespace

std::string report_text(const costmodel::RunReport& report, const costmodel::Scenario& scenario,
                        const std::string& interval, const std::string& more) {
  const bool simulated = scenario::possible(report).executor == "simulated";
  std::string text;
  for (const std::string& line : report.warnings) text += fmt::format("Warning: {}.\n", line);
  text += (text.empty() ? "" : "\n") + title(report, scenario);
  if (!report.memory_problem.empty())
    text += fmt::format(
        "This scenario cannot run as configured: it {}.\nThe numbers below assume that it can.\n\n",
        report.memory_problem);
  text += shares(report) + interval + '\n';
  std::vector<Row> rows = {{"compute utilisation", human_percent(report.compute_utilization)}};
  if (report.efficiency) {
    rows.push_back({"MFU in steps", human_percent(report.efficiency->mfu)});
    rows.push_back({"MFU over the run", human_percent(report.efficiency->run_mfu)});
    if (report.efficiency->kernel_efficiency)
      rows.push_back({"kernel efficiency", human_percent(*report.efficiency->kernel_efficiency)});
  }
  rows.insert(rows.end(), {{"throughput", human_count(report.tokens_per_s) + " tokens/s"},
                           {"sent per site per round", human_bytes(report.bytes_sent_per_site_per_round)},
                           {"sent per token", human_bytes(report.bytes_per_token)},
                           {"memory per site",
                            human_bytes(costmodel::counts_of(scenario).fullest_site().bytes_per_site)}});
  text += aligned(rows);
  if (costmodel::all_gpus(scenario) > scenario.sites())
    text += "compute includes the communication among the GPUs of a site\n";
  text += fmt::format("\nlimited by {}; {}\n\n", report.bottleneck.limited_by, waiting_text(report));
  text += critical_path_text(report);
  if (report.cost) text += cost_table(report);
  if (report.quality) text += quality_text(report);
  text += attendance_text(report) + goodput_text(report) + replicas_text(report);
  if (report.sites.size() <= 16) text += sites(report, scenario) + '\n';
  text += more + human_provenance(report.provenance);
  text += fmt::format("\nNetwork: bandwidth_efficiency {}; {}\n", scenario.network.bandwidth_efficiency,
                      !simulated ? "fluid links without contention between transfers"
                      : scenario.network.initial_window_bytes
                          ? "connections with windows, and queues; " + network_terms(scenario.network)
                          : "fluid flows, max-min fair shares; " + network_terms(scenario.network));
  text += fmt::format("Executor: {}\n", report.executor);
  text += validation_range_text(report, scenario) + accuracy_text(scenario);
  for (const std::string& note : report.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

namespace {

template <class Record, std::size_t N>
void add_names(std::string& header, const char* prefix, const costmodel::ReportField<Record> (&fields)[N]) {
  for (const auto& field : fields) header += fmt::format(",{}{}", prefix, field.name);
}
template <class Record, std::size_t N>
void add_cells(std::string& row, const Record& record, const costmodel::ReportField<Record> (&fields)[N]) {
  for (const auto& field : fields) {
    std::visit(
        [&]<class Value>(Value Record::*member) {
          if constexpr (std::is_same_v<Value, std::string>) {
            row += ',' + csv_cell(record.*member);
          } else {
            row += fmt::format(",{}", record.*member);
          }
        },
        field.member);
  }
}

}  // namespace

std::string csv_header() {
  std::string header = "executor,method,sites,local_steps,expert_overlap";
  add_names(header, "", costmodel::kReportFields);
  header += ",memory_bytes_per_site";
  add_names(header, "round_", costmodel::kRoundFields);
  return header +
         ",limited_by,busiest_link,link_busy_share,currency,cost_total,gpu_cost,egress_cost,port_cost,store_"
         "cost,energy_cost,energy_kwh,perplexity,perplexity_plus_"
         "minus,fits,problem";
}

std::string csv_row(const costmodel::RunReport& report, const costmodel::Scenario& scenario) {
  std::string row =
      fmt::format("{},{},{},{},{}", scenario::possible(report).executor, scenario.strategy.method->name,
                  scenario.sites(), scenario.strategy.local_steps, costmodel::effective_overlap(scenario));
  add_cells(row, report, costmodel::kReportFields);
  row += fmt::format(",{}", costmodel::counts_of(scenario).fullest_site().bytes_per_site);
  add_cells(row, report.round, costmodel::kRoundFields);
  row += fmt::format(",{},{},{}", report.bottleneck.limited_by, csv_cell(report.bottleneck.link),
                     report.bottleneck.link_busy_share);
  const auto priced = report.cost && !report.cost->currency.empty();
  const auto cost = report.cost.value_or(costmodel::Cost{});
  const auto cell = [](bool known, double value) { return known ? fmt::format("{}", value) : std::string(); };
  const auto quality = report.quality.value_or(costmodel::Quality{});
  return row +
         fmt::format(",{},{},{},{},{},{},{},{},{},{}", cost.currency, cell(priced, cost.cost_total),
                     cell(priced, cost.gpu_cost), cell(priced, cost.egress_cost),
                     cell(priced, cost.port_cost), cell(priced, cost.store_cost),
                     cell(priced, cost.energy_cost),
                     cell(cost.energy_kwh.has_value(), cost.energy_kwh.value_or(0)),
                     cell(quality.known, quality.perplexity),
                     cell(quality.known && quality.plus_minus, quality.plus_minus.value_or(0))) +
         fmt::format(",{},{}",
                     costmodel::fullest_gpu(costmodel::counts_of(scenario)).available == 0 ? ""
                     : report.memory_problem.empty()                                       ? "true"
                                                                                           : "false",
                     csv_cell(report.memory_problem));
}

}  // namespace fomoe::commands
