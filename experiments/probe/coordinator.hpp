// Rank 0's part: one control connection to every site, over which it asks for measurements.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/probe/line_socket.hpp"
#include "experiments/probe/measurements.hpp"

namespace fomoe::probe {

/// A site closed its connection, does not answer any more, or never came. Names it.
class SiteLost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a site says when it comes.
struct Hello {
  int rank = 0, world = 0;
  std::string name;  // empty: to be named after its host
  std::string host;
  std::string address;  // at which the others reach it; empty: from which it came
  std::string iperf3;   // version; empty: it has none
};
nlohmann::json to_json(const Hello& hello);

struct Site {
  std::string name, address;
  std::string iperf3;
  LineSocket connection;
};

/// Waits for ranks 1 … world − 1. `first` is rank 0 itself. Throws SiteLost where some do not come in time,
/// std::runtime_error for two sites of one name, for other mistakes that hellos show, and for a site without
/// iperf3.
std::vector<Site> gather_sites(const Socket& listener, const Hello& first, LineSocket own, double until_s);

/// The names of all, by rank; sites that gave none are named after their hosts, with the rank where two share
/// one. Throws std::runtime_error for names given twice.
std::vector<std::string> site_names(const std::vector<Hello>& hellos);

struct MeasureOptions {
  std::vector<int> streams = {1, 4, 16};
  int seconds = 3;
  int repetitions = 3;
};

/// Measures everything; `say` gets a line now and then. Throws SiteLost, and std::runtime_error for what
/// fails twice. Tells the sites nothing of the end.
Measurements measure(std::vector<Site>& sites, const MeasureOptions& options,
                     const std::function<void(const std::string&)>& say);

/// How long measure() takes, about, with round trips of 0.1 s.
double expected_s(int sites, const MeasureOptions& options);

/// Every site that can still be reached is told to go.
void end_all(std::vector<Site>& sites, const std::string& error) noexcept;

}  // namespace fomoe::probe
