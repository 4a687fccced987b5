#include "sim/executor/simulation_size.hpp"

#include <algorithm>

#include "costmodel/plan/collective_steps.hpp"

namespace fomoe::sim {

using costmodel::CollectiveSteps;
using costmodel::Exchange;
using costmodel::Transfer;

namespace {

double calls_of(const Exchange& exchange, const costmodel::Pieces& cut) {
  if (!cut) return 1;
  double calls = 0;
  for (const costmodel::Payload& payload : exchange.payloads)
    calls += static_cast<double>(cut(payload).size());
  return calls;
}

// The flows of one call in each of its steps.
std::vector<double> flows_of_steps(const Transfer& transfer, int nodes) {
  const CollectiveSteps steps(transfer.pattern, transfer.collective, nodes);
  std::vector<double> flows(static_cast<std::size_t>(steps.count()), 0);
  for (std::size_t s = 0; s < flows.size(); ++s)
    steps.each(static_cast<int>(s), [&](const costmodel::Sending& /*sent*/) { ++flows[s]; });
  return flows;
}

}  // namespace

SimulationSize& SimulationSize::operator+=(const SimulationSize& other) {
  flows += other.flows;
  at_once = std::max(at_once, other.at_once);
  seconds += other.seconds;
  return *this;
}

double simulation_seconds(double flows, double at_once, bool links_differ) {
  constexpr double kFlow_s = 4e-6, kShareTogether_s = 5e-8, kShareApart_s = 2e-6;
  return flows * (kFlow_s + at_once * (links_differ ? kShareApart_s : kShareTogether_s));
}

SimulationSize size_of(const costmodel::RoundPlan& round, const LoweringOptions& options, bool links_differ) {
  SimulationSize size;
  for (const costmodel::Op& op : round.ops) {
    const auto* transfer = std::get_if<Transfer>(&op.what);
    if (transfer == nullptr) continue;
    // Exchanges of as many nodes have the same steps; a plan has few kinds.
    std::size_t nodes = 0;
    std::vector<double> steps;
    double flows = 0, at_once = 0;
    for (const Exchange& exchange : transfer->exchanges) {
      if (exchange.nodes.size() != nodes || steps.empty()) {
        nodes = exchange.nodes.size();
        steps = flows_of_steps(*transfer, static_cast<int>(nodes));
      }
      const double calls = calls_of(exchange, options.pieces);
      double of_call = 0, most = 0;
      for (const double of_step : steps) {
        of_call += of_step;
        most = std::max(most, of_step);
      }
      // Bundled exchanges share the flows between two nodes, so only the largest counts.
      flows = options.bundle ? std::max(flows, calls * of_call) : flows + calls * of_call;
      at_once = options.bundle ? std::max(at_once, most) : at_once + most;
    }
    size += {flows, at_once, simulation_seconds(flows, at_once, links_differ)};
  }
  return size;
}

}  // namespace fomoe::sim
