// Results of `fomoe probe` for each pair of sites, and the platform file made from them.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace fomoe::probe {

struct Spread {
  double least = 0, median = 0, most = 0;
};
/// The median of at least one value. For an even number of values it is the mean of the middle two.
Spread spread_of(std::vector<double> values);

/// All measurements from one site to another. Rates are TCP payload in bytes per second.
struct PairMeasurements {
  std::vector<double> round_trips_s;  // seconds, with no transfer at the same time
  /// No other transfer, by number of streams; one value per repetition.
  std::map<int, std::vector<double>> alone;
  std::vector<double> together;  // while every site sent to one site and received from one site
  std::vector<double> with_the_senders_others;    // while the sender sent to all other sites too
  std::vector<double> with_the_receivers_others;  // while all other sites sent to the receiver too
};

struct Measurements {
  std::vector<std::string> sites;
  std::vector<PairMeasurements> pairs;  // sites² entries, row = sender; the diagonal is unused
  std::string iperf3_version;
  std::string date;  // "2026-11-21"
  int seconds = 0;   // duration of each transfer
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
/// The median rate with the best number of streams: the capacity of the path.
PathRate path_rate(const Measurements& measured, int from, int to);

/// The number of streams for transfers that run beside others: the largest number whose median is within 5 %
/// of the best. A single stream may reach the same rate alone, but many streams keep their share better
/// beside other transfers and beside the acknowledgements of the opposite direction.
int streams_beside_others(const Measurements& measured, int from, int to);

struct PortRate {
  Spread bytes_per_s;
  bool several = false;  // measured with all other sites at once; false: the largest rate of one path
};
/// The total rate that a site sends or receives. If one path alone was faster than all paths together (their
/// other ends may be slow), it is the rate of that path.
PortRate uplink(const Measurements& measured, int site);
PortRate downlink(const Measurements& measured, int site);

/// A path that was slower than the platform file says while every site sent to one site and received from one
/// site. Then no uplink, downlink or path of the file was used twice, so some other link is shared.
struct SharedPath {
  int from = 0, to = 0;
  double expected_bytes_per_s = 0, got_bytes_per_s = 0;  // medians
};
inline constexpr double kSharedBelow = 0.9;
std::vector<SharedPath> shared_paths(const Measurements& measured);

/// The platform file (TOML). Rates are medians and latencies are half of the median round trip. A comment
/// gives the smallest and largest value of every number.
std::string platform_toml(const Measurements& measured, const std::string& name);

/// One sentence for each shared path.
std::vector<std::string> warnings(const Measurements& measured);

}  // namespace fomoe::probe
