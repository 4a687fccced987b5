#include "experiments/calibration/calibrate_iperf3.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "costmodel/inputs/network_model.hpp"
#include "experiments/probe/iperf3_json.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/units.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::commands {

using costmodel::Fit;
using costmodel::FitTerm;

namespace {

struct Observed {
  std::string path;
  probe::Iperf3Transfer transfer;
  double round_trip_s = 0;
};

std::vector<Observed> read_reports(const std::vector<std::string>& paths, double link_bytes_per_s,
                                   std::optional<double> round_trip_s) {
  std::vector<Observed> all;
  for (const std::string& path : paths) {
    Observed one{path, {}, 0};
    try {
      one.transfer = probe::read_iperf3(whole_file(path).value_or(""));
    } catch (const probe::Iperf3Error& error) {
      scenario::fail(path + ":1", "iperf3", error.what(), "a report of one TCP transfer",
                     "iperf3 -c HOST -P 4 -J");
    }
    if (one.transfer.bytes_per_s > link_bytes_per_s)
      throw InputError("--link-rate",
                       fmt::format("{:.4g}Mbps", link_bytes_per_s * scenario::kBitsPerByte / 1e6),
                       fmt::format("at least the rate in {}, {:.4g}Mbps of payload", path,
                                   one.transfer.bytes_per_s * scenario::kBitsPerByte / 1e6),
                       "--link-rate 1Gbps");
    if (!round_trip_s && !one.transfer.round_trip_s)
      throw InputError("--round-trip", fmt::format("no round trip, and {} has no mean_rtt", path), "a time",
                       "--round-trip 50ms");
    one.round_trip_s = round_trip_s ? *round_trip_s : *one.transfer.round_trip_s;
    all.push_back(std::move(one));
  }
  return all;
}

/// The scenario of one transfer over the link, with no other transfer at the same time.
double predicted_rate(const Observed& one, double link_bytes_per_s, double efficiency,
                      double window_reciprocal) {
  costmodel::NetworkModel network;
  network.streams = one.transfer.streams;
  if (window_reciprocal > 0) network.tcp_window_bytes = 1 / window_reciprocal;
  return std::min(efficiency * link_bytes_per_s, costmodel::flow_cap_bytes_per_s(network, one.round_trip_s));
}

Fit fit(const std::vector<Observed>& all, double link_bytes_per_s, const std::vector<FitTerm>& terms) {
  std::vector<double> seconds;
  for (const Observed& one : all) seconds.push_back(one.transfer.seconds);
  return costmodel::fit_terms(
      terms,
      [&](const std::vector<double>& values) {
        std::vector<double> predicted;
        for (const Observed& one : all) {
          const double bytes = one.transfer.bytes_per_s * one.transfer.seconds;
          predicted.push_back(
              bytes / predicted_rate(one, link_bytes_per_s, values[0], values.size() > 1 ? values[1] : 0));
        }
        return predicted;
      },
      seconds);
}

/// The starting value of the fit, which uses the reciprocal of the TCP window. It is the reciprocal of the
/// window with which the transfer with the fewest streams would have its measured rate.
double first_guess(const std::vector<Observed>& all) {
  const Observed& fewest = *std::min_element(
      all.begin(), all.end(),
      [](const Observed& a, const Observed& b) { return a.transfer.streams < b.transfer.streams; });
  return fewest.transfer.streams / (fewest.transfer.bytes_per_s * fewest.round_trip_s);
}

}  // namespace

bool is_iperf3_report(const std::string& path) {
  const auto report =
      nlohmann::json::parse(whole_file(path).value_or(""), nullptr, /*allow_exceptions=*/false);
  return report.is_object() && report.contains("start") && report.contains("end");
}

Calibration calibrate_iperf3(const std::vector<std::string>& paths, double link_bytes_per_s,
                             std::optional<double> round_trip_s) {
  const std::vector<Observed> all = read_reports(paths, link_bytes_per_s, round_trip_s);
  const FitTerm efficiency = {"bandwidth_efficiency", 1, 1, 0.02, 0.01, 1};
  const double guess = first_guess(all);
  const FitTerm window = {"tcp_window", 0, guess, 0.05 * guess, 0, 1};
  Calibration found;
  for (const Observed& one : all) {
    Observation& observation = found.data.observations.emplace_back();
    observation.name = one.path;
    observation.communication_s = one.transfer.seconds;
  }
  found.fit = fit(all, link_bytes_per_s, {efficiency});
  if (!found.fit.refused.empty())
    throw std::runtime_error("the data do not support a fit: " + found.fit.refused);
  const Fit with_window = fit(all, link_bytes_per_s, {efficiency, window});
  std::string why_not = with_window.refused;
  if (why_not.empty() && !with_window.terms[1].supported) why_not = with_window.terms[1].why_not;
  if (why_not.empty() && !costmodel::better_than_chance(with_window, found.fit))
    why_not = "more streams did not raise the rate significantly, so the window limited no stream";
  if (why_not.empty()) found.fit = with_window;
  found.terms = found.fit.terms;
  if (!why_not.empty()) found.terms.push_back({"tcp_window", false, 0, 0, 0, why_not, false});
  return found;
}

}  // namespace fomoe::commands
