// A session of fomoe-wan: creates the emulation, checks it, runs the user's command on it, and writes the
// report.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "platforms/wan/check/check.hpp"
#include "platforms/wan/network/isolation.hpp"
#include "platforms/wan/network/layout.hpp"
#include "platforms/wan/session/supervise.hpp"

namespace fomoe::platforms::wan {

/// The place of the queue in front of a site's uplink.
///   host    in the site's own kernel, as if the machine's interface were the bottleneck: sockets notice it,
///           and hold their data back (egress.hpp)
///   router  behind the site, in one queue of the relay: data of all connections queue there, and
///           acknowledgements wait behind them
/// All other queues are in the relay.
enum class UplinkQueue { host, router };
inline const char* to_string(UplinkQueue queue) { return queue == UplinkQueue::host ? "host" : "router"; }

/// Limits of the buffers of TCP sockets while the user's command runs.
///   system  those of this machine. A connection whose bandwidth-delay product is larger than two thirds of
///   its
///           send buffer then does not fill its links, as on an ordinary host
///   large   at least 4 bandwidth-delay products of the slowest path, so that they limit no connection
enum class Buffers { system, large };
inline const char* to_string(Buffers buffers) { return buffers == Buffers::system ? "system" : "large"; }

struct SessionOptions {
  NetworkOptions network;
  Buffers buffers = Buffers::system;
  std::optional<CoreShares> cores;
  std::optional<double> quota_cores;  // CPU time of each site, in cores
  UplinkQueue uplink_queue = UplinkQueue::host;
  bool check = true;
  int master_port = 29500;
  int processes_per_site = 1;
  std::string report;                // path of the report; no report if empty
  std::vector<std::string> command;  // if empty, the session only checks the emulation
};

/// The state of the kernel and of the relay during the session, for the report.
struct Circumstances {
  std::string kernel, congestion_control, slow_start_after_idle, send_buffer, receive_buffer;
  std::uint64_t relayed_packets = 0, dropped_packets = 0;
  double relayed_bytes = 0, mean_late_s = 0, most_late_s = 0;
};

/// Runs a session, and returns the exit status of the program. SIGINT, SIGTERM and SIGHUP are blocked during
/// the session, and end it. Throws Refusal if this machine does not allow it.
int run_session(const Layout& layout, const SessionOptions& options);

/// The path where the command at site `site` may write its RunReport, beside `report`; empty if `report` is.
std::string site_report_path(const std::string& report, const std::string& site);

/// The report of the session as JSON, with the schema "fomoe.wan/1". `run_report` is the RunReport of rank 0,
/// or empty.
std::string report_json(const Layout& layout, const SessionOptions& options, const Check& check,
                        const Circumstances& circumstances, const Supervised& supervised,
                        const std::string& run_report);

}  // namespace fomoe::platforms::wan
