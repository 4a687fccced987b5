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
  /// Rates of transfers with no other transfer at the same time. The key is the number of streams; the list
  /// has one value for each repetition.
  std::map<int, std::vector<double>> alone;
  std::vector<double> together;  // rates while every site sent to one site and received from one site
  std::vector<double> with_the_senders_others;    // rates while the sender sent to all other sites
  std::vector<double> with_the_receivers_others;  // rates while all other sites sent to the receiver
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
/// of the best. A single stream may reach the same rate while no other transfer runs. Many streams together
/// lose less of their rate to other transfers, and to acknowledgements in the opposite direction.
int streams_beside_others(const Measurements& measured, int from, int to);

struct PortRate {
  Spread bytes_per_s;
  bool several = false;  // true: measured with all other sites at once; false: the largest rate of one path
};
/// The total rate that a site sends or receives. If one path alone was faster than all paths of the site
/// together, the result is the rate of that path, because the sites at the other ends may have limited the
/// total.
PortRate uplink(const Measurements& measured, int site);
PortRate downlink(const Measurements& measured, int site);

/// A path that was slower than the platform file says while every site sent to one site and received from one
/// site. In this measurement, each uplink, downlink and path of the file carried only one transfer. A slower
/// path therefore shares a link that the file does not contain.
struct SharedPath {
  int from = 0, to = 0;
  double expected_bytes_per_s = 0, got_bytes_per_s = 0;  // medians
};
inline constexpr double kSharedBelow = 0.9;
std::vector<SharedPath> shared_paths(const Measurements& measured);

/// The platform file (TOML). Rates are medians and latencies are half of the median round trip. For each
/// number, a comment gives the smallest and largest measured value.
std::string platform_toml(const Measurements& measured, const std::string& name);

/// One sentence for each shared path.
std::vector<std::string> warnings(const Measurements& measured);

}  // namespace fomoe::probe
