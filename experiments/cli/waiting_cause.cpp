#include "experiments/cli/waiting_cause.hpp"

#include <utility>

#include "costmodel/formula/closed_form.hpp"
#include "platforms/platform.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::commands {
namespace {

using costmodel::Scenario;

constexpr double kMuch = 1e6;  // a factor that leaves next to nothing of what it removes

void without_bandwidth(Scenario& scenario) {
  scenario.platform = platforms::scaled_bandwidth(std::move(scenario.platform), kMuch);
}

void without_latency(Scenario& scenario) {
  scenario.platform = platforms::changed_latencies(std::move(scenario.platform),
                                                   [](double latency_s) { return latency_s / kMuch; });
}

void without_connections(Scenario& scenario) {
  scenario.platform.paths.change_all(
      [](platforms::Path& path) { path.connection_bytes_per_s = platforms::kUnlimited; });
  for (platforms::SharedLink& link : scenario.platform.shared_links)
    if (link.per_flow) link.bandwidth_bytes_per_s *= kMuch;
}

void without_payload_rate(Scenario& scenario) { scenario.network.payload_bytes_per_s.reset(); }

struct Cause {
  const char* name;
  void (*remove)(Scenario&);
};
constexpr Cause kCauses[] = {{"bandwidth", without_bandwidth},
                             {"latency", without_latency},
                             {"connections", without_connections},
                             {"payload_rate", without_payload_rate}};

double exposed_s(const Scenario& scenario) {
  return costmodel::closed_form(scenario).round.exposed_communication_s;
}

}  // namespace

std::string waiting_cause(const Scenario& scenario, const costmodel::RunReport& report) {
  if (report.round.exposed_communication_s < kLeastWaiting * report.round.duration_s) return "";
  Scenario bare = scenario;  // these do not affect times
  bare.prices.reset();
  bare.quality.reset();
  bare.failures.reset();
  try {
    const double computed_s = exposed_s(bare);
    if (computed_s < report.round.exposed_communication_s / 2)  // the closed form leaves most of it out
      return scenario.network.call_overhead_s > 0 ? "call_overhead" : "";
    std::string cause;
    double least_s = computed_s / 2;
    for (const Cause& candidate : kCauses) {
      Scenario without = bare;
      candidate.remove(without);
      const double left_s = exposed_s(without);
      if (left_s >= least_s) continue;
      least_s = left_s;
      cause = candidate.name;
    }
    return cause;
  } catch (const InputError&) {
    return "";  // only the simulation has a time for this scenario
  }
}

bool direct_is_faster(const Scenario& scenario) {
  constexpr double kNoticeable = 0.99;
  if (scenario.strategy.collective == costmodel::Collective::direct) return false;
  Scenario direct = scenario;
  direct.strategy.collective = costmodel::Collective::direct;
  try {
    return costmodel::closed_form(direct).wall_clock_s <
           kNoticeable * costmodel::closed_form(scenario).wall_clock_s;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace fomoe::commands
