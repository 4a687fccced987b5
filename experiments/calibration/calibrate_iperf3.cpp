#include "experiments/calibration/calibrate_iperf3.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

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
      throw InputError("--round-trip",
                       fmt::format("no round trip, and {} has neither min_rtt nor mean_rtt", path), "a time",
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

/// Values of both terms.
struct Start {
  double efficiency = 1;
  double window_reciprocal = 0;  // 0: no window limits any transfer
};

Fit fit(const std::vector<Observed>& all, double link_bytes_per_s, const std::vector<FitTerm>& terms) {
  std::vector<double> seconds;
  for (const Observed& one : all) seconds.push_back(one.transfer.seconds);
  return costmodel::fit_terms(
      terms,
      [&](const std::vector<double>& values) {
        Start start;
        for (std::size_t i = 0; i < terms.size(); ++i)
          (terms[i].name == "tcp_window" ? start.window_reciprocal : start.efficiency) = values[i];
        std::vector<double> predicted;
        for (const Observed& one : all) {
          const double bytes = one.transfer.bytes_per_s * one.transfer.seconds;
          predicted.push_back(
              bytes / predicted_rate(one, link_bytes_per_s, start.efficiency, start.window_reciprocal));
        }
        return predicted;
      },
      seconds);
}

/// The sum of squared relative errors of the times.
double squares_of(const std::vector<Observed>& all, double link_bytes_per_s, const Start& start) {
  double sum = 0;
  for (const Observed& one : all) {
    const double predicted = predicted_rate(one, link_bytes_per_s, start.efficiency, start.window_reciprocal);
    const double error = one.transfer.bytes_per_s / predicted - 1;
    sum += error * error;
  }
  return sum;
}

/// The best of these fits: the windows limit the transfers with the fewest connections per round trip, and
/// the link all others. Of transfers that the same term limits, with the rates r ÷ what the term gives for
/// the value 1, the reciprocal of the value with the least squares is Σ q ÷ Σ q², since the error of a time
/// is value⁻¹·q − 1.
Start best_start(std::vector<Observed> all, double link_bytes_per_s) {
  const auto for_one_byte = [](const Observed& one) { return one.transfer.streams / one.round_trip_s; };
  std::sort(all.begin(), all.end(),
            [&](const Observed& a, const Observed& b) { return for_one_byte(a) < for_one_byte(b); });
  Start best;
  double least = squares_of(all, link_bytes_per_s, best);
  std::vector<std::size_t> divisions = {0, all.size()};  // where several fit as well, one term is enough
  for (std::size_t by_window = 1; by_window < all.size(); ++by_window) divisions.push_back(by_window);
  for (const std::size_t by_window : divisions) {
    double windows = 0, windows2 = 0, links = 0, links2 = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double q =
          all[i].transfer.bytes_per_s / (i < by_window ? for_one_byte(all[i]) : link_bytes_per_s);
      (i < by_window ? windows : links) += q;
      (i < by_window ? windows2 : links2) += q * q;
    }
    Start start;
    if (links2 > 0) start.efficiency = std::clamp(links2 / links, 0.01, 1.0);
    if (windows2 > 0) start.window_reciprocal = windows / windows2;
    const double squares = squares_of(all, link_bytes_per_s, start);
    if (squares >= least - 1e-9) continue;
    least = squares;
    best = start;
  }
  return best;
}

/// Whether links and windows predict all transfers in the same proportions: all have about as many
/// connections per round trip, and none comes near the link's rate, which no window would do by chance.
bool cannot_tell(const std::vector<Observed>& all, double link_bytes_per_s) {
  constexpr double kAlike = 1.05, kFull = 0.8;
  double least = platforms::kUnlimited, most = 0, fastest = 0;
  for (const Observed& one : all) {
    least = std::min(least, one.transfer.streams / one.round_trip_s);
    most = std::max(most, one.transfer.streams / one.round_trip_s);
    fastest = std::max(fastest, one.transfer.bytes_per_s);
  }
  return most < kAlike * least && fastest < kFull * link_bytes_per_s;
}

/// Whether a fit of the window alone does not describe the transfers, and one with the link's share does. A
/// single transfer that is slower than the windows of the others by what transfers vary does not show what
/// the link carries.
bool link_shows(const std::vector<Observed>& all, double link_bytes_per_s, const Start& start,
                const Fit& with_link, const Fit& window_alone) {
  constexpr double kVaries = 0.1;
  if (!costmodel::better_than_chance(with_link, window_alone)) return false;
  int by_link = 0;
  double slowest = 1;  // rate ÷ what the windows would allow
  for (const Observed& one : all) {
    const double by_windows = predicted_rate(one, platforms::kUnlimited, 1, start.window_reciprocal);
    if (by_windows < start.efficiency * link_bytes_per_s) continue;
    ++by_link;
    slowest = std::min(slowest, one.transfer.bytes_per_s / by_windows);
  }
  return by_link > 1 || slowest < 1 - kVaries;
}

}  // namespace

namespace {

/// What a file is that looks like one of iperf3, but is no report of one transfer; empty if it is something
/// else.
std::string other_iperf3_output(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  if (text.find("{\"event\":") != std::string::npos || text.find("\"event\": \"start\"") != std::string::npos)
    return "the events of iperf3 --json-stream";
  // A report may hold the server's text (--get-server-output).
  if (text[first] != '{' &&
      (text.compare(first, 4, "[ ID") == 0 || text.find("Mbits/sec") != std::string::npos ||
       text.find("Gbits/sec") != std::string::npos || text.find("Bitrate") != std::string::npos))
    return "iperf3's text for people";
  if (text.find("busbw") != std::string::npos) return "a table of nccl-tests";
  if (text.find("rtt min/avg/max") != std::string::npos || text.compare(first, 4, "PING") == 0)
    return "the output of ping";
  const std::size_t report = text.find("\"start\"");
  if (text[first] == '{' && report != std::string::npos &&
      text.find("\"start\"", report + 1) != std::string::npos &&
      nlohmann::json::parse(text, nullptr, false).is_discarded())
    return "several reports in one file";
  return "";
}

}  // namespace

void refuse_other_iperf3_output(const std::string& path) {
  const std::string what = other_iperf3_output(whole_file(path).value_or(""));
  if (what.empty()) return;
  scenario::fail(path + ":1", "iperf3", what, "one report of one transfer in each file, as -J writes it",
                 "iperf3 -c HOST -P 4 -J > p4.json");
}

bool is_iperf3_report(const std::string& path) {
  const auto report =
      nlohmann::json::parse(whole_file(path).value_or(""), nullptr, /*allow_exceptions=*/false);
  return report.is_object() && report.contains("start") && report.contains("end");
}

Calibration calibrate_iperf3(const std::vector<std::string>& paths, double link_bytes_per_s,
                             std::optional<double> round_trip_s) {
  const std::vector<Observed> all = read_reports(paths, link_bytes_per_s, round_trip_s);
  if (cannot_tell(all, link_bytes_per_s))
    throw std::runtime_error(
        "the data do not support a fit: all transfers have as many connections for each round trip, so that "
        "their windows or the link may have limited them; also measure other numbers of connections, for "
        "example with iperf3 -P 16");
  const Start start = best_start(all, link_bytes_per_s);
  const FitTerm efficiency = {"bandwidth_efficiency", 1, start.efficiency, 0.02, 0.01, 1};
  const double scale = 0.05 * (start.window_reciprocal > 0 ? start.window_reciprocal : 1e-7);
  const FitTerm window = {"tcp_window", 0, start.window_reciprocal, scale, 0, 1};
  Calibration found;
  for (const Observed& one : all) {
    Observation& observation = found.data.observations.emplace_back();
    observation.name = one.path;
    observation.communication_s = one.transfer.seconds;
    observation.scenario.network = costmodel::linux_host();
  }
  // Sockets of the measured hosts allowed the window: 2/3 of a send buffer, and half of a receive buffer.
  const auto let_buffers_allow = [&](const costmodel::FittedTerm& term) {
    for (Observation& observation : found.data.observations) {
      observation.scenario.network = costmodel::linux_host();
      observation.scenario.network.send_buffer_bytes = std::ceil(1.5 / term.value);
      observation.scenario.network.receive_buffer_bytes = std::ceil(2 / term.value);
    }
  };
  const std::string advice = fmt::format(
      "no share of the link's rate and no window describe these transfers{}. Were all of them over "
      "one link, without other traffic, with the round trip given?",
      all.size() < 4 ? ", and so few cannot show both: measure more numbers of connections" : "");
  const Fit with_window = fit(all, link_bytes_per_s, {efficiency, window});
  found.fit = fit(all, link_bytes_per_s, {efficiency});
  if (start.window_reciprocal > 0 && all.size() > 1) {
    const Fit alone = fit(all, link_bytes_per_s, {window});
    const bool best = !found.fit.refused.empty() || alone.sum_of_squares <= found.fit.sum_of_squares;
    if (alone.refused.empty() && alone.terms[0].supported && best &&
        !link_shows(all, link_bytes_per_s, start, with_window, alone)) {
      found.fit = alone;
      found.terms = {
          {"bandwidth_efficiency", false, 1, 0, 0,
           "windows alone describe these transfers, so that what the link carries does not follow from them",
           false},
          alone.terms[0]};
      let_buffers_allow(found.terms.back());
      refuse_bad_fit(found, advice);
      return found;
    }
  }
  if (!found.fit.refused.empty())
    throw std::runtime_error("the data do not support a fit: " + found.fit.refused);
  std::string why_not = with_window.refused;
  if (why_not.empty() && !with_window.terms[1].supported) why_not = with_window.terms[1].why_not;
  if (why_not.empty() && !costmodel::better_than_chance(with_window, found.fit))
    why_not = "more streams did not raise the rate significantly, so the window limited no stream";
  if (start.window_reciprocal <= 0) why_not = "no transfer was slower than its link because of windows";
  if (why_not.empty()) found.fit = with_window;
  found.terms = found.fit.terms;
  if (why_not.empty()) let_buffers_allow(found.terms.back());
  if (!why_not.empty()) found.terms.push_back({"tcp_window", false, 0, 0, 0, why_not, false});
  refuse_bad_fit(found, advice);
  return found;
}

}  // namespace fomoe::commands
