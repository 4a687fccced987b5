// Rank 0's part of the probe: it holds one control connection to every site and requests the measurements.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/probe/line_socket.hpp"
#include "experiments/probe/measurements.hpp"

namespace fomoe::probe {

/// A site closed its connection, stopped answering, or never connected. The message names the site.
class SiteLost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The first message of a site.
struct Hello {
  int rank = 0, world = 0;
  std::string name;  // empty: the site is named after its host
  std::string host;
  /// Address at which other sites reach this one; empty: the source address of its connection.
  std::string address;
  std::string iperf3;  // version of iperf3; empty if it is not installed
};
nlohmann::json to_json(const Hello& hello);

struct Site {
  std::string name, address;
  std::string iperf3;
  LineSocket connection;
};

/// Waits for ranks 1 … world − 1. `first` is the first message of rank 0 itself. Throws SiteLost if a rank
/// does not connect in time. Throws std::runtime_error for two sites with the same name, for other
/// inconsistent first messages, and for a site without iperf3.
std::vector<Site> gather_sites(const Descriptor& listener, const Hello& first, LineSocket own,
                               double until_s);

/// The names of all sites, by rank. A site without a name is named after its host, with its rank appended if
/// two sites share a host name. Throws std::runtime_error if a name was given twice.
std::vector<std::string> site_names(const std::vector<Hello>& hellos);

struct MeasureOptions {
  std::vector<int> streams = {1, 4, 16};
  int seconds = 3;
  int repetitions = 3;
};

/// Runs all measurements; `say` is called with lines about the progress. Throws SiteLost, and
/// std::runtime_error if a measurement fails twice. Does not tell the sites to end.
Measurements measure(std::vector<Site>& sites, const MeasureOptions& options,
                     const std::function<void(const std::string&)>& say);

/// The approximate duration of measure() in seconds, for round trips of 0.1 s.
double expected_s(int sites, const MeasureOptions& options);

/// Tells every site that can still be reached to end.
void end_all(std::vector<Site>& sites, const std::string& error) noexcept;

}  // namespace fomoe::probe
