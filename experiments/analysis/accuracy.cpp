#include "experiments/analysis/accuracy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "experiments/analysis/validation_data.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::commands {

namespace {

bool latencies_differ(const platforms::Platform& platform) {
  std::optional<double> first;
  for (int from = 0; from < platform.size(); ++from) {
    for (int to = 0; to < platform.size(); ++to) {
      if (from == to) continue;
      const double latency_s = platform.path(from, to).latency_s;
      if (first && latency_s != *first) return true;
      first = latency_s;
    }
  }
  return false;
}

/// The name of the network terms in the CSV; empty if no runs were predicted with such terms.
std::string terms_of(const costmodel::NetworkModel& network) {
  const costmodel::NetworkModel linux_terms = costmodel::linux_host();
  const auto keys = costmodel::switched_on(network);
  const auto only = [&](std::vector<std::string> allowed) {
    for (const costmodel::NetworkTerm& term : keys) {
      if (std::find(allowed.begin(), allowed.end(), term.key) == allowed.end()) return false;
    }
    return true;
  };
  if (keys.empty() && network.bandwidth_efficiency == 1) return "none";
  if (network.bandwidth_efficiency != linux_terms.bandwidth_efficiency ||
      network.initial_window_bytes != linux_terms.initial_window_bytes || !network.idle_restart)
    return "";
  if (only({"initial_window", "congestion_control"})) return "linux";
  return only({"initial_window", "congestion_control", "payload_rate"}) ? "fitted" : "";
}

std::string in_words(const std::string& terms) {
  if (terms == "none") return "without network terms";
  return terms == "linux" ? "with the terms of an ordinary Linux host"
                          : "with the terms of a Linux host and a payload rate";
}

/// The ends of the interval that contains 95 % of the measured times of such runs. From error = predicted ÷
/// measured − 1 follows measured = predicted ÷ (1 + error).
std::pair<double, double> interval_s(const Accuracy& accuracy, double wall_clock_s) {
  return {wall_clock_s / (1 + accuracy.p95), wall_clock_s / (1 - accuracy.p95)};
}

}  // namespace

std::optional<Accuracy> accuracy_of(const costmodel::Scenario& scenario) {
  if (scenario.sites() < 2) return std::nullopt;
  const std::string terms = terms_of(scenario.network);
  const std::string latencies = latencies_differ(scenario.platform) ? "unequal" : "equal";
  std::istringstream lines(kValidationAccuracy);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    if (row.size() != 6 || row[0] != terms || row[1] != latencies) continue;
    return Accuracy{in_words(terms),         latencies,
                    std::stoi(row[2]),       std::stod(row[3]) / 100,
                    std::stod(row[4]) / 100, std::stod(row[5]) / 100};
  }
  return std::nullopt;
}

std::string accuracy_text(const costmodel::RunReport& report, const costmodel::Scenario& scenario) {
  if (scenario.sites() < 2) return "";
  const std::optional<Accuracy> accuracy = accuracy_of(scenario);
  if (!accuracy)
    return "Accuracy: unknown, because no real run was predicted with these network terms\n";
  const auto [low_s, high_s] = interval_s(*accuracy, report.wall_clock_s);
  return fmt::format(
      "Accuracy: {} real runs with {} latencies, predicted {}, had errors of {:.1f} % (median), {:.1f} % (p95) "
      "and {:.1f} % (worst); 95 % of such runs would take {} to {}\n",
      accuracy->runs, accuracy->latencies, accuracy->terms, 100 * accuracy->median, 100 * accuracy->p95,
      100 * accuracy->worst, human_time(low_s), human_time(high_s));
}

scenario::Json accuracy_json(const costmodel::RunReport& report, const costmodel::Scenario& scenario) {
  const std::optional<Accuracy> accuracy = accuracy_of(scenario);
  if (!accuracy) return nullptr;
  const auto [low_s, high_s] = interval_s(*accuracy, report.wall_clock_s);
  return {{"terms", accuracy->terms},
          {"latencies", accuracy->latencies},
          {"runs", accuracy->runs},
          {"median_error", accuracy->median},
          {"p95_error", accuracy->p95},
          {"worst_error", accuracy->worst},
          {"wall_clock_s", {low_s, high_s}}};
}

}  // namespace fomoe::commands
