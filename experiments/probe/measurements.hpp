// What was measured between sites, and the platform file that says it.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace fomoe::probe {

struct Spread {
  double least = 0, median = 0, most = 0;
};
/// Of at least one value; the median of an even number of them is the mean of the middle two.
Spread spread_of(std::vector<double> values);

/// All that was measured from one site to another. Rates are TCP payload, bytes per second.
struct PairMeasurements {
  std::vector<double> round_trips_s;              // with nothing else under way
  std::map<int, std::vector<double>> alone;       // by number of streams: one value a repetition
  std::vector<double> together;                   // while every site sent to one and received from one
  std::vector<double> with_the_senders_others;    // while the sender sent to all others as well
  std::vector<double> with_the_receivers_others;  // while all others sent to the receiver as well
};

struct Measurements {
  std::vector<std::string> sites;
  std::vector<PairMeasurements> pairs;  // sites², row = from; the diagonal is unused
  std::string iperf3_version;
  std::string date;  // "2026-11-21"
  int seconds = 0;   // of each transfer
  int repetitions = 0;

  [[nodiscard]] int size() const { return static_cast<int>(sites.size()); }
  [[nodiscard]] const PairMeasurements& pair(int from, int to) const {
    return pairs[static_cast<std::size_t>(from * size() + to)];
  }
  [[nodiscard]] PairMeasurements& pair(int from, int to) {
    return pairs[static_cast<std::size_t>(from * size() + to)];
  }
};

struct PathRate {
  int streams = 0;
  Spread bytes_per_s;
};
/// Of the number of streams with the largest median: what the path itself lets through.
PathRate path_rate(const Measurements& measured, int from, int to);

/// For transfers beside others: the largest number of streams whose median is within 5 % of the best. Alone a
/// single stream may do as well; beside others, or beside the acknowledgements of the other direction, many
/// hold their share better.
int streams_beside_others(const Measurements& measured, int from, int to);

struct PortRate {
  Spread bytes_per_s;
  bool several = false;  // with all other sites at once; otherwise the largest rate of one path
};
/// All that a site sends, or receives. One path may have shown more than all at once (whose other ends may be
/// slow): then it is that.
PortRate uplink(const Measurements& measured, int site);
PortRate downlink(const Measurements& measured, int site);

/// A path that got less than the platform file says while every site sent to one and received from one, so
/// that no uplink, downlink or path of the file was used twice: something else is shared.
struct SharedPath {
  int from = 0, to = 0;
  double expected_bytes_per_s = 0, got_bytes_per_s = 0;  // medians
};
inline constexpr double kSharedBelow = 0.9;
std::vector<SharedPath> shared_paths(const Measurements& measured);

/// A platform file (TOML), every number with its least and most in a comment: rates are medians, latencies
/// half of the median round trip.
std::string platform_toml(const Measurements& measured, const std::string& name);

/// One line for each shared path, in words.
std::vector<std::string> warnings(const Measurements& measured);

}  // namespace fomoe::probe
