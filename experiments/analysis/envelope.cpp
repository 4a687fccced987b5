#include "experiments/analysis/envelope.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <utility>

#include "costmodel/plan/method.hpp"
#include "experiments/analysis/validation_data.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/each_path.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::commands {

namespace {

struct Range {
  double low = 0, high = 0;
};

struct Envelope {
  std::map<std::string, Range> ranges;
  std::vector<std::string> methods;
};

/// The ranges in the CSV that experiments/validation/report.py writes. The CSV is compiled into the program.
const Envelope& envelope() {
  static const Envelope read = [] {
    Envelope out;
    std::istringstream lines(kValidationEnvelope);
    std::string line;
    std::getline(lines, line);  // skip the header
    while (std::getline(lines, line)) {
      const std::size_t first = line.find(','), second = line.find(',', first + 1);
      const std::string quantity = line.substr(0, first), low = line.substr(first + 1, second - first - 1);
      if (quantity == "method") {
        out.methods.push_back(low);
      } else {
        out.ranges[quantity] = {parse_number<double>(low).value(),
                                parse_number<double>(line.substr(second + 1)).value()};
      }
    }
    return out;
  }();
  return read;
}

std::string rate(double bytes_per_s) {
  const double bits_per_s = bytes_per_s * 8;
  return bits_per_s < 1e9 ? fmt::format("{:.4g} Mbit/s", bits_per_s / 1e6)
                          : fmt::format("{:.4g} Gbit/s", bits_per_s / 1e9);
}
std::string plain(double value) { return fmt::format("{:g}", value); }

/// The smallest and largest single-connection rate and latency over all pairs of sites.
struct Links {
  Range bytes_per_s, latency_s;
};
Links links_of(const platforms::Platform& platform) {
  Links links = {{platforms::kUnlimited, 0}, {platforms::kUnlimited, 0}};
  for (int from = 0; from < platform.size(); ++from) {
    for (int to = 0; to < platform.size(); ++to) {
      if (from == to) continue;
      const platforms::Path& path = platform.path(from, to);
      const double bytes_per_s = platform.route_bytes_per_s(from, to);
      links.bytes_per_s.low = std::min(links.bytes_per_s.low, bytes_per_s);
      links.bytes_per_s.high = std::max(links.bytes_per_s.high, bytes_per_s);
      links.latency_s.low = std::min(links.latency_s.low, path.latency_s);
      links.latency_s.high = std::max(links.latency_s.high, path.latency_s);
    }
  }
  return links;
}

/// Says that send buffers limit flows of the scenario further than those of the compared runs did
/// (experiments/validation/system-buffers.csv). Empty if they do not.
std::string limited_by_buffers(const costmodel::Scenario& scenario) {
  if (!scenario.network.send_buffer_bytes) return "";
  costmodel::NetworkModel buffers;
  buffers.send_buffer_bytes = scenario.network.send_buffer_bytes;
  buffers.streams = scenario.network.streams;
  const platforms::Platform platform = costmodel::effective_platform(scenario.platform, scenario.network);
  double least_share = 1;
  platforms::each_path(platform, [&](int from, int to, const platforms::Path& path) {
    if (std::isfinite(path.connection_bytes_per_s)) return;  // the measured rate includes what buffers do
    const double cap =
        costmodel::flow_cap_bytes_per_s(buffers, path.latency_s + platform.path(to, from).latency_s, path);
    least_share = std::min(least_share, cap / platform.route_bytes_per_s(from, to));
  });
  constexpr double kCompared = 0.37;  // 400 Mb/s and 150 ms
  if (least_share >= kCompared) return "";
  return fmt::format(
      "send buffers limit a flow to {} of its links' rate: those of the compared runs to {} at most",
      human_percent(least_share), human_percent(kCompared));
}

/// The name of the network terms in the CSV; empty if no runs were predicted with such terms.
std::string terms_of(const costmodel::NetworkModel& network, const platforms::Platform& platform) {
  costmodel::NetworkModel linux_terms = costmodel::linux_host(platform.packet_bytes);
  if (platform.payload_rates) linux_terms.bandwidth_efficiency = 1;
  auto keys = costmodel::switched_on(network);
  // The compared runs were paced: a rate that a profile measured is a property of its device, as its steps
  // are.
  if (!network.payload_rate_profile.empty())
    std::erase_if(keys, [](const costmodel::NetworkTerm& term) { return term.key == "payload_rate"; });
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
  return only({"initial_window", "congestion_control", "send_buffer", "receive_buffer", "uplink_queue"})
             ? "linux"
             : "";
}

std::string in_words(const std::string& terms) {
  return terms == "none" ? "without network terms" : "with the terms of an ordinary Linux host";
}

}  // namespace

std::vector<std::string> outside_of_validation(const costmodel::RunReport& report,
                                               const costmodel::Scenario& scenario) {
  std::vector<std::string> lines;
  const auto compare = [&](const char* what, const char* key, Range asked, std::string (*shown)(double)) {
    const Range tried = envelope().ranges.at(key);
    const std::string range = fmt::format("({} to {})", shown(tried.low), shown(tried.high));
    // The values in the CSV are rounded.
    if (asked.high > tried.high * (1 + 1e-6))
      lines.push_back(fmt::format("{} {}: {:.3g} times the maximum of the validated range {}", what,
                                  shown(asked.high), asked.high / tried.high, range));
    if (asked.low < tried.low * (1 - 1e-6))
      lines.push_back(fmt::format("{} {}: {:.3g} times the minimum of the validated range {}", what,
                                  shown(asked.low), asked.low / tried.low, range));
  };
  const auto sites = static_cast<double>(scenario.sites());
  compare("sites", "sites", {sites, sites}, plain);
  if (scenario.sites() > 1) {
    const Links links = links_of(scenario.platform);
    compare("link rate", "bytes_per_s", links.bytes_per_s, rate);
    compare("latency", "latency_s", links.latency_s, human_time);
  }
  if (const std::string line = limited_by_buffers(scenario); !line.empty()) lines.push_back(line);
  const double bytes = report.bytes_sent_per_site_per_round;
  compare("bytes sent per site and round", "bytes_sent_per_site_per_round", {bytes, bytes}, human_bytes);
  const auto& methods = envelope().methods;
  if (std::find(methods.begin(), methods.end(), scenario.strategy.method->name) == methods.end())
    lines.push_back(fmt::format("method {}: the validated methods are {}", scenario.strategy.method->name,
                                scenario::joined(methods)));
  return lines;
}

std::string validation_range_text(const costmodel::RunReport& report, const costmodel::Scenario& scenario) {
  const std::vector<std::string> outside = outside_of_validation(report, scenario);
  if (outside.empty())
    return "Validation: the scenario is inside the ranges in which predictions were compared with real runs "
           "(experiments/validation/README.md)\n";
  return "Validation: the scenario is outside the ranges in which predictions were compared with real "
         "runs: " +
         scenario::joined(outside, "; ") + '\n';
}

std::optional<Accuracy> accuracy_of(const costmodel::Scenario& scenario) {
  if (scenario.sites() < 2) return std::nullopt;
  const std::string terms = terms_of(scenario.network, scenario.platform);
  const std::string latencies = platforms::latencies_differ(scenario.platform) ? "unequal" : "equal";
  std::istringstream lines(kValidationAccuracy);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    if (row.size() != 7 || row[0] != terms || row[1] != latencies) continue;
    return Accuracy{in_words(terms),
                    latencies,
                    std::stoi(row[2]),
                    parse_number<double>(row[3]).value() / 100,
                    parse_number<double>(row[4]).value() / 100,
                    parse_number<double>(row[5]).value() / 100,
                    parse_number<double>(row[6]).value() / 100};
  }
  return std::nullopt;
}

std::string why_no_interval(const costmodel::RunReport& report, const costmodel::Scenario& scenario) {
  if (!report.warnings.empty()) return "of the warnings above";
  if (!outside_of_validation(report, scenario).empty())
    return "the scenario lies outside of the conditions of the runs that were compared";
  return "";
}

std::string accuracy_text(const costmodel::Scenario& scenario) {
  if (scenario.sites() < 2) return "";
  const std::optional<Accuracy> accuracy = accuracy_of(scenario);
  if (!accuracy) return "Accuracy: unknown, because no real run was predicted with these network terms\n";
  return fmt::format(
      "Accuracy: {} real runs with {} latencies, predicted {}, had errors of {:.1f} % (median), {:.1f} % "
      "(p95) and {:.1f} % (worst), and of {:.1f} % (p95) in what they took beside computation\n",
      accuracy->runs, accuracy->latencies, accuracy->terms, 100 * accuracy->median, 100 * accuracy->p95,
      100 * accuracy->worst, 100 * accuracy->waiting_p95);
}

scenario::Json accuracy_json(const costmodel::Scenario& scenario) {
  const std::optional<Accuracy> accuracy = accuracy_of(scenario);
  if (!accuracy) return nullptr;
  return {{"terms", accuracy->terms},
          {"latencies", accuracy->latencies},
          {"runs", accuracy->runs},
          {"median_error", accuracy->median},
          {"p95_error", accuracy->p95},
          {"worst_error", accuracy->worst},
          {"waiting_p95_error", accuracy->waiting_p95}};
}

}  // namespace fomoe::commands
