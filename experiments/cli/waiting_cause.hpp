// Why sites wait for the network: what would remove most of the waiting.
#pragma once
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

/// Sites that wait for a smaller share of the time do not wait: nothing is said of the cause.
inline constexpr double kLeastWaiting = 0.005;

/// What the sites of this run wait for, by the closed form: of the causes below, the one without which they
/// wait least, if they then wait at most half as long. Empty if there is none.
///   "bandwidth"       rates of links
///   "latency"         latencies, which also limit connections by their windows and losses
///   "connections"     rates that single connections carry (connection_bandwidth of paths and shared links)
///   "payload_rate"    network_model.payload_rate
///   "call_overhead"   network_model.call_overhead, if the closed form, which has none, waits less than half
std::string waiting_cause(const costmodel::Scenario& scenario, const costmodel::RunReport& report);

/// Whether strategy.collective = "direct" makes the run at least 1 % shorter, by the closed form.
bool direct_is_faster(const costmodel::Scenario& scenario);

}  // namespace fomoe::commands
