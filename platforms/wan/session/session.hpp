// One use of the emulation, from the first namespace to the report.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "platforms/wan/check/check.hpp"
#include "platforms/wan/network/isolation.hpp"
#include "platforms/wan/network/layout.hpp"
#include "platforms/wan/session/supervise.hpp"

namespace fomoe::platforms::wan {

/// Where bytes wait that a site's uplink cannot take at once.
///   host    in the site's own kernel, as where a machine's interface is the bottleneck: sockets feel it and
///   hold
///           their data back (egress.hpp)
///   router  behind the site, in one queue of the relay: data of all connections pile up there, and
///           acknowledgements behind them
/// All other queues are the relay's.
enum class UplinkQueue { host, router };
inline const char* to_string(UplinkQueue queue) { return queue == UplinkQueue::host ? "host" : "router"; }

struct SessionOptions {
  NetworkOptions network;
  std::optional<CoreShares> cores;
  std::optional<double> quota_cores;  // of each site
  UplinkQueue uplink_queue = UplinkQueue::host;
  bool check = true;
  int master_port = 29500;
  std::string report;                // a file; empty: none
  std::vector<std::string> command;  // empty: only check
};

/// What the report says about the kernel and the relay, besides the check.
struct Circumstances {
  std::string kernel, congestion_control, slow_start_after_idle, send_buffer, receive_buffer;
  std::uint64_t relayed_packets = 0, dropped_packets = 0;
  double relayed_bytes = 0, mean_late_s = 0, most_late_s = 0;
};

/// Lays out, checks, runs. Returns the exit status. Signals are blocked while it runs and end it.
int run_session(const Layout& layout, const SessionOptions& options);

/// Where site `site` may leave its RunReport, beside the report; empty without a report.
std::string site_report_path(const std::string& report, const std::string& site);

/// Schema "fomoe.wan/1". `run_report`: what rank 0 left, or empty.
std::string report_json(const Layout& layout, const SessionOptions& options, const Check& check,
                        const Circumstances& circumstances, const Supervised& supervised,
                        const std::string& run_report);

}  // namespace fomoe::platforms::wan
