#include "experiments/probe/measurements.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/math/quantiles.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::probe {

namespace {

std::string quotable(std::string text) {
  for (char& c : text)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') c = '_';
  return text;
}

std::string rate(double bytes_per_s) {
  return fmt::format("{:.4g}Mbps", bytes_per_s * scenario::kBitsPerByte / 1e6);
}
std::string milliseconds(double seconds) { return fmt::format("{:.4g}ms", seconds * 1e3); }

/// For each repetition: the sum over the other sites of what `values` gives for each site.
template <class Values>
std::vector<double> sums(const Measurements& measured, int site, Values values) {
  std::vector<double> sums;
  for (int other = 0; other < measured.size(); ++other) {
    if (other == site) continue;
    const std::vector<double>& of_pair = values(other);
    sums.resize(std::max(sums.size(), of_pair.size()), 0);
    for (std::size_t i = 0; i < of_pair.size(); ++i) sums[i] += of_pair[i];
  }
  return sums;
}

PortRate port(const std::vector<double>& all_at_once, const std::vector<PathRate>& paths) {
  PortRate found;
  for (const PathRate& path : paths) {
    if (path.bytes_per_s.median > found.bytes_per_s.median) found.bytes_per_s = path.bytes_per_s;
  }
  if (all_at_once.empty()) return found;
  const Spread together = spread_of(all_at_once);
  if (together.median >= found.bytes_per_s.median) found = {together, true};
  return found;
}

std::string port_line(const char* key, const PortRate& port, int sites) {
  return fmt::format("{} = \"{}\"  # {} to {}, {}\n", key, rate(port.bytes_per_s.median),
                     rate(port.bytes_per_s.least), rate(port.bytes_per_s.most),
                     port.several ? fmt::format("with all {} other sites at once", sites - 1)
                     : sites > 2  ? "with one site, because all sites at once gave less"
                                  : "with the only other site");
}

std::string path_table(const Measurements& measured, int from, int to) {
  const PairMeasurements& pair = measured.pair(from, to);
  const Spread round_trip = spread_of(pair.round_trips_s);
  const PathRate best = path_rate(measured, from, to);
  std::string text = fmt::format(
      "[[path]]\nfrom = \"{}\"\nto = \"{}\"\nlatency = \"{}\"  # round trip {} ({} to {}, {} times)\n"
      "bandwidth = \"{}\"  # {} to {}, {} stream{}\n",
      measured.sites[static_cast<std::size_t>(from)], measured.sites[static_cast<std::size_t>(to)],
      milliseconds(round_trip.median / 2), milliseconds(round_trip.median), milliseconds(round_trip.least),
      milliseconds(round_trip.most), pair.round_trips_s.size(), rate(best.bytes_per_s.median),
      rate(best.bytes_per_s.least), rate(best.bytes_per_s.most), best.streams, best.streams == 1 ? "" : "s");
  if (const auto one = pair.alone.find(1); one != pair.alone.end()) {
    const Spread spread = spread_of(one->second);
    text += fmt::format("connection_bandwidth = \"{}\"  # {} to {}, 1 stream\n", rate(spread.median),
                        rate(spread.least), rate(spread.most));
  }
  for (const auto& [streams, rates] : pair.alone) {
    if (streams == best.streams || streams == 1) continue;
    const Spread spread = spread_of(rates);
    text += fmt::format("# {} stream{}: {} ({} to {})\n", streams, streams == 1 ? "" : "s",
                        rate(spread.median), rate(spread.least), rate(spread.most));
  }
  if (!pair.together.empty()) {
    const Spread spread = spread_of(pair.together);
    text += fmt::format("# while every site sent and received: {} ({} to {})\n", rate(spread.median),
                        rate(spread.least), rate(spread.most));
  }
  return text;
}

/// The largest number of streams that gave the rate of some path.
int most_streams(const Measurements& measured) {
  int most = 1;
  for (int from = 0; from < measured.size(); ++from) {
    for (int to = 0; to < measured.size(); ++to) {
      if (from != to) most = std::max(most, path_rate(measured, from, to).streams);
    }
  }
  return most;
}

std::string stream_list(const Measurements& measured) {
  std::string list;
  for (const auto& [streams, rates] : measured.pair(0, 1).alone)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", streams);
  return list;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), costmodel::median(values), values.back()};
}

PathRate path_rate(const Measurements& measured, int from, int to) {
  PathRate best;
  for (const auto& [streams, rates] : measured.pair(from, to).alone) {
    const Spread spread = spread_of(rates);
    if (spread.median > best.bytes_per_s.median) best = {streams, spread};
  }
  return best;
}

int streams_beside_others(const Measurements& measured, int from, int to) {
  constexpr double kAsGood = 0.95;
  const double best = path_rate(measured, from, to).bytes_per_s.median;
  int most = 1;
  for (const auto& [streams, rates] : measured.pair(from, to).alone) {
    if (spread_of(rates).median >= kAsGood * best) most = std::max(most, streams);
  }
  return most;
}

PortRate uplink(const Measurements& measured, int site) {
  std::vector<PathRate> paths;
  for (int to = 0; to < measured.size(); ++to)
    if (to != site) paths.push_back(path_rate(measured, site, to));
  return port(
      sums(
          measured,
          site, [&](int to) -> const auto& { return measured.pair(site, to).with_the_senders_others; }),
      paths);
}

PortRate downlink(const Measurements& measured, int site) {
  std::vector<PathRate> paths;
  for (int from = 0; from < measured.size(); ++from)
    if (from != site) paths.push_back(path_rate(measured, from, site));
  return port(
      sums(
          measured,
          site, [&](int from) -> const auto& { return measured.pair(from, site).with_the_receivers_others; }),
      paths);
}

std::vector<SharedPath> shared_paths(const Measurements& measured) {
  std::vector<SharedPath> found;
  for (int from = 0; from < measured.size(); ++from) {
    for (int to = 0; to < measured.size(); ++to) {
      if (from == to || measured.pair(from, to).together.empty()) continue;
      const double expected =
          std::min({path_rate(measured, from, to).bytes_per_s.median,
                    uplink(measured, from).bytes_per_s.median, downlink(measured, to).bytes_per_s.median});
      const double got = spread_of(measured.pair(from, to).together).median;
      if (got < kSharedBelow * expected) found.push_back({from, to, expected, got});
    }
  }
  return found;
}

std::vector<std::string> warnings(const Measurements& measured) {
  std::vector<std::string> lines;
  for (const SharedPath& path : shared_paths(measured)) {
    lines.push_back(fmt::format(
        "{} to {}: {} while every site sent to one site and received from one site, {:.0f} % of "
        "the {} without other transfers: a machine, a firewall or a line is shared ([[link]] in a "
        "platform file can describe it), or the two directions slow each other down",
        measured.sites[static_cast<std::size_t>(path.from)],
        measured.sites[static_cast<std::size_t>(path.to)], rate(path.got_bytes_per_s),
        100 * path.got_bytes_per_s / path.expected_bytes_per_s, rate(path.expected_bytes_per_s)));
  }
  return lines;
}

std::string platform_toml(const Measurements& measured, const std::string& name) {
  std::string text = fmt::format(
      "# Medians, each with the smallest and the largest value beside it. Rates are TCP payload: do not set "
      "network_model.bandwidth_efficiency.\n# bandwidth is what the most connections reached together, and "
      "connection_bandwidth what a single one did: a flow gets\n# at most network_model.streams times the "
      "latter, so set streams to the connections that your training opens.\n"
      "name = \"{}\"\nsource = \"fomoe probe, {}: iperf3 {}, the best of {} streams, {} s each, {}; one-way "
      "latency taken as half of the round trip\"\nmeasured = true\nrates = \"payload\"\nrates_of = "
      "\"machine\"\nconnections = {}\n",
      quotable(name), measured.date, measured.iperf3_version, stream_list(measured), measured.seconds,
      measured.repetitions == 1 ? "once" : fmt::format("{} times", measured.repetitions),
      most_streams(measured));
  for (const std::string& line : warnings(measured)) text += fmt::format("# {}\n", line);
  for (int site = 0; site < measured.size(); ++site) {
    text += fmt::format("\n[[site]]\nname = \"{}\"\n", measured.sites[static_cast<std::size_t>(site)]);
    text += "rates_of = \"machine\"\n";
    text += port_line("uplink", uplink(measured, site), measured.size());
    text += port_line("downlink", downlink(measured, site), measured.size());
  }
  for (int from = 0; from < measured.size(); ++from) {
    for (int to = 0; to < measured.size(); ++to) {
      if (from != to) text += fmt::format("\n{}", path_table(measured, from, to));
    }
  }
  return text;
}

}  // namespace fomoe::probe
