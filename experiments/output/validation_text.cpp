#include "experiments/output/validation_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/plan/method.hpp"
#include "experiments/results/json_values.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::commands {

using costmodel::Bound;
using costmodel::Compared;
using costmodel::ErrorSummary;
using scenario::Json;

namespace {

std::string name_of(Compared what) {
  return std::string(costmodel::kComparedNames[static_cast<std::size_t>(what)]);
}
std::optional<double> error_of(const ValidatedRun& run, Compared what) {
  return run.errors[static_cast<std::size_t>(what)];
}
std::string stem(const ValidatedRun& run) { return std::filesystem::path(run.measured.path).stem().string(); }

/// An error as text: "+1.2 %"; for utilisation "−0.4 pt".
std::string signed_error(const ValidatedRun& run, Compared what) {
  const std::optional<double> error = error_of(run, what);
  if (!error) return "";
  if (!std::isfinite(*error)) return "none measured";
  return fmt::format("{:+.1f} {}", 100 * *error, what == Compared::utilization ? "pt" : "%");
}

std::string size(double error, Compared what) {
  if (!std::isfinite(error)) return "none measured";
  return fmt::format("{:.2f} {}", 100 * error, what == Compared::utilization ? "pt" : "%");
}

struct Group {
  std::string name;
  std::vector<std::size_t> members;
};

std::vector<Group> groups_of(const std::vector<ValidatedRun>& runs) {
  std::vector<Group> groups = {{"all", {}}};
  const auto add = [&](const std::string& name, std::size_t run) {
    auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.name == name; });
    if (found == groups.end()) found = groups.insert(groups.end(), {name, {}});
    found->members.push_back(run);
  };
  for (std::size_t i = 0; i < runs.size(); ++i) groups.front().members.push_back(i);
  for (const Bound bound : {Bound::compute, Bound::communication, Bound::overlapped}) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].bound == bound) add(to_string(bound), i);
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i) add(runs[i].scenario.strategy.method->name, i);
  return groups;
}

/// Statistics over the runs that have this error; empty if no run has it.
std::optional<ErrorSummary> summary(const std::vector<ValidatedRun>& runs,
                                    const std::vector<std::size_t>& members, Compared what) {
  std::vector<double> errors;
  std::vector<std::size_t> known;
  for (const std::size_t i : members) {
    const std::optional<double> error = error_of(runs[i], what);
    if (!error) continue;
    errors.push_back(*error);
    known.push_back(i);
  }
  if (errors.empty()) return std::nullopt;
  ErrorSummary summary = costmodel::summary_of(errors);
  summary.worst_run = known[summary.worst_run];
  return summary;
}

double statistic(const ErrorSummary& summary, const std::string& name) {
  return name == "median" ? summary.median : name == "p95" ? summary.p95 : summary.worst;
}

std::string runs_table(const std::vector<ValidatedRun>& runs) {
  std::vector<Row> rows = {{"run", "method", "sites", "K", "bound", "measured", "predicted", "wall clock",
                            "compute", "communication", "synchronisation", "utilisation", "later rounds"}};
  for (const ValidatedRun& run : runs) {
    const bool in_turn = run.measured.record.in_turn;
    rows.push_back({stem(run), run.scenario.strategy.method->name, std::to_string(run.scenario.sites()),
                    std::to_string(run.scenario.strategy.local_steps),
                    in_turn ? "in turn" : to_string(run.bound),
                    in_turn ? "" : human_time(run.measured.report.wall_clock_s),
                    in_turn ? "" : human_time(run.predicted.wall_clock_s),
                    signed_error(run, Compared::wall_clock), signed_error(run, Compared::compute),
                    signed_error(run, Compared::communication), signed_error(run, Compared::synchronization),
                    signed_error(run, Compared::utilization), signed_error(run, Compared::later_rounds)});
  }
  return aligned(rows);
}

std::string groups_table(const std::vector<ValidatedRun>& runs) {
  std::vector<Row> rows = {{"runs", "", "error of", "median", "p95", "worst", "bias", "worst run"}};
  for (const Group& group : groups_of(runs)) {
    bool first = true;
    for (const Compared what :
         {Compared::wall_clock, Compared::compute, Compared::communication, Compared::synchronization,
          Compared::utilization, Compared::first_round, Compared::later_rounds}) {
      const std::optional<ErrorSummary> of = summary(runs, group.members, what);
      if (!of) continue;
      rows.push_back({first ? group.name : "", first ? std::to_string(of->runs) : "", name_of(what),
                      size(of->median, what), size(of->p95, what), size(of->worst, what),
                      fmt::format("{}{}", of->bias < 0 ? "" : "+", size(of->bias, what)),
                      stem(runs[of->worst_run])});
      first = false;
    }
  }
  return aligned(rows);
}

/// States how many runs had paced compute, that is, slept for the predicted step time. Such runs do not test
/// predictions of compute.
std::string how_measured(const std::vector<ValidatedRun>& runs) {
  const auto paced = std::count_if(runs.begin(), runs.end(),
                                   [](const ValidatedRun& run) { return run.measured.record.paced; });
  if (paced == 0) return "";
  return fmt::format(
      "Compute was paced in {} of {} runs: these runs slept for the step times that the prediction uses, so "
      "they test only the network.\n",
      paced, runs.size());
}

/// States how many runs had sites that worked in turn.
std::string in_turn_line(const std::vector<ValidatedRun>& runs) {
  const auto in_turn = std::count_if(runs.begin(), runs.end(),
                                     [](const ValidatedRun& run) { return run.measured.record.in_turn; });
  if (in_turn == 0) return "";
  return fmt::format(
      "The sites of {} of {} runs worked in turn in one process: these runs tell how long compute takes and "
      "what is sent, and nothing about transfers.\n",
      in_turn, runs.size());
}

/// States how many runs lost sites and were started again, and how long that took.
std::string lost_line(const std::vector<ValidatedRun>& runs) {
  std::size_t again = 0;
  double lost_s = 0;
  for (const ValidatedRun& run : runs) {
    if (run.measured.record.whole) continue;
    ++again;
    lost_s += run.measured.record.all->lost_s;
  }
  if (again == 0) return "";
  return fmt::format(
      "{} of {} runs lost sites and were started again: they are predicted with the sites that took part in "
      "each round. The time between the checkpoints before the losses and the next rounds, {}, is the runs' "
      "own "
      "on both sides, and no part of the errors; all other errors but that of the wall clock are those of "
      "the "
      "rounds since the last start.\n",
      again, runs.size(), human_time(lost_s));
}

std::string bytes_line(const std::vector<ValidatedRun>& runs) {
  const auto off = std::count_if(runs.begin(), runs.end(),
                                 [](const ValidatedRun& run) { return error_of(run, Compared::bytes) != 0; });
  if (off == 0) return fmt::format("Bytes sent: exactly as predicted in all {} runs.\n", runs.size());
  std::vector<std::size_t> all(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) all[i] = i;
  const ErrorSummary worst = summary(runs, all, Compared::bytes).value();
  return fmt::format("Bytes sent: different from the prediction in {} of {} runs, most in {} ({}).\n", off,
                     runs.size(), stem(runs[worst.worst_run]),
                     signed_error(runs[worst.worst_run], Compared::bytes));
}

/// The network terms, if all runs have the same ones.
std::string network_line(const std::vector<ValidatedRun>& runs) {
  const auto text_of = [](const costmodel::NetworkModel& network) {
    std::string text = fmt::format("bandwidth_efficiency {}", network.bandwidth_efficiency);
    for (const costmodel::NetworkTerm& term : costmodel::switched_on(network)) text += "; " + term.text;
    return text;
  };
  const std::string first = text_of(runs.front().scenario.network);
  for (const ValidatedRun& run : runs) {
    if (text_of(run.scenario.network) != first) return "Network: the runs' scenarios have different terms.\n";
  }
  return "Network: " + first + ".\n";
}

Json figures(const costmodel::RunReport& report) {
  return {{"wall_clock_s", report.wall_clock_s},
          {"compute_s", report.round.compute_s},
          {"communication_s", report.round.communication_s},
          {"synchronization_s", report.round.transferring_s},
          {"compute_utilization", report.compute_utilization},
          {"bytes_sent_per_site_per_round", report.bytes_sent_per_site_per_round},
          {"rounds", report.round.count},
          {"round_durations_s", report.round_durations_s}};
}

/// JSON has no infinity, so an infinite number becomes null.
Json finite_number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

std::vector<std::string> check_limits(const std::vector<ValidatedRun>& runs,
                                      const std::vector<ErrorLimit>& limits) {
  std::vector<std::size_t> all(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) all[i] = i;
  std::vector<std::string> lines;
  for (const ErrorLimit& limit : limits) {
    const std::optional<ErrorSummary> of = summary(runs, all, limit.what);
    if (!of) {
      lines.push_back(fmt::format(
          "{}: no run lists its rounds and has sites that ran at the same time, so the limit cannot be "
          "checked",
          name_of(limit.what)));
      continue;
    }
    const double found = statistic(*of, limit.statistic);
    if (found <= limit.most) continue;
    lines.push_back(fmt::format("{} error of {}: {}, more than the limit of {}{}", limit.statistic,
                                name_of(limit.what), size(found, limit.what), size(limit.most, limit.what),
                                limit.statistic == "worst" ? " (" + stem(runs[of->worst_run]) + ")" : ""));
  }
  return lines;
}

std::string validation_text(const std::vector<ValidatedRun>& runs) {
  return runs_table(runs) + '\n' + groups_table(runs) + '\n' + bytes_line(runs) + how_measured(runs) +
         in_turn_line(runs) + lost_line(runs) + network_line(runs);
}

std::string validation_csv(const std::vector<ValidatedRun>& runs) {
  std::string text =
      "run,id,started_at,paced,method,sites,local_steps,expert_overlap,collective,bound,measured_wall_clock_"
      "s,"
      "predicted_wall_clock_s,measured_compute_s,predicted_compute_s,measured_communication_s,"
      "predicted_communication_s,measured_synchronization_s,predicted_synchronization_s,measured_utilization,"
      "predicted_utilization,measured_bytes,predicted_bytes";
  for (const std::string_view name : costmodel::kComparedNames) text += fmt::format(",{}_error", name);
  text += '\n';
  for (const ValidatedRun& run : runs) {
    const costmodel::RunReport &m = run.measured.report, &p = run.predicted;
    const costmodel::Strategy& strategy = run.scenario.strategy;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_cell(stem(run)),
        run.measured.record.id, run.measured.record.started_at, run.measured.record.paced,
        strategy.method->name, run.scenario.sites(), strategy.local_steps, strategy.expert_overlap,
        to_string(strategy.collective), to_string(run.bound), m.wall_clock_s, p.wall_clock_s,
        m.round.compute_s, p.round.compute_s, m.round.communication_s, p.round.communication_s,
        m.round.transferring_s, p.round.transferring_s, m.compute_utilization, p.compute_utilization,
        m.bytes_sent_per_site_per_round, p.bytes_sent_per_site_per_round);
    for (const std::optional<double>& error : run.errors)
      text += error && std::isfinite(*error) ? fmt::format(",{}", *error) : ",";
    text += '\n';
  }
  return text;
}

std::string validation_json(const std::vector<ValidatedRun>& runs) {
  Json list = Json::array(), groups = Json::array();
  for (const ValidatedRun& run : runs) {
    Json errors;
    for (std::size_t i = 0; i < costmodel::kComparedCount; ++i)
      errors[std::string(costmodel::kComparedNames[i])] =
          run.errors[i] ? finite_number(*run.errors[i]) : Json(nullptr);
    list.push_back({{"run", stem(run)},
                    {"id", run.measured.record.id},
                    {"started_at", run.measured.record.started_at},
                    {"paced", run.measured.record.paced},
                    {"in_turn", run.measured.record.in_turn},
                    {"bound", to_string(run.bound)},
                    {"measured", figures(run.measured.report)},
                    {"predicted", figures(run.predicted)},
                    {"errors", errors},
                    {"scenario", scenario::to_json(run.scenario)}});
    if (!run.measured.record.whole)
      list.back()["whole_run"] = {{"restarts", run.measured.record.all->restarts},
                                  {"lost_s", run.measured.record.all->lost_s}};
  }
  for (const Group& group : groups_of(runs)) {
    Json errors;
    for (std::size_t i = 0; i < costmodel::kComparedCount; ++i) {
      const std::optional<ErrorSummary> of = summary(runs, group.members, static_cast<Compared>(i));
      if (!of) continue;
      errors[std::string(costmodel::kComparedNames[i])] = {{"runs", of->runs},
                                                           {"median", finite_number(of->median)},
                                                           {"p95", finite_number(of->p95)},
                                                           {"worst", finite_number(of->worst)},
                                                           {"bias", finite_number(of->bias)},
                                                           {"worst_run", stem(runs[of->worst_run])}};
    }
    groups.push_back({{"name", group.name}, {"runs", group.members.size()}, {"errors", errors}});
  }
  return scenario::to_text({{"schema", "fomoe.validation/1"}, {"groups", groups}, {"runs", list}});
}

}  // namespace fomoe::commands
