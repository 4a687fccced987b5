// Bytes that a plan sends, computed from its operations. The tests compute them independently of the
// simulator's lowering.
#pragma once
#include <cstdint>
#include <string>

#include "costmodel/compose/composition.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::tests {

/// Returns the bytes that cross between sites in one exchange of `bytes` bytes among `nodes`. The first node
/// is the root of a reduce or a broadcast.
inline double crossing_bytes(const costmodel::Plan& plan, costmodel::Pattern pattern,
                             const std::vector<costmodel::NodeId>& nodes, double bytes) {
  const auto n = static_cast<double>(nodes.size());
  const auto site = [&](std::size_t i) { return plan.nodes[static_cast<std::size_t>(nodes[i])].site; };
  switch (pattern) {
    case costmodel::Pattern::all_reduce:
      return 2 * (n - 1) * bytes;
    case costmodel::Pattern::reduce_scatter:
    case costmodel::Pattern::all_gather:
    case costmodel::Pattern::all_to_all:
      return (n - 1) * bytes;
    case costmodel::Pattern::all_to_all_broadcast:
      return n * (n - 1) * bytes;
    case costmodel::Pattern::reduce:
    case costmodel::Pattern::broadcast: {
      double remote = 0;
      for (std::size_t i = 1; i < nodes.size(); ++i) remote += site(i) != site(0) ? 1 : 0;
      return remote * bytes;
    }
    case costmodel::Pattern::point_to_point:
      return site(0) != site(1) ? bytes : 0;
  }
  return 0;
}

/// Returns the bytes that sites send in one exchange of `bytes` bytes in which a store is nodes[0]: what
/// comes from the store is sent by no site.
inline double uploaded_bytes(const costmodel::Transfer& transfer, std::size_t nodes, double bytes) {
  if (transfer.pattern != costmodel::Pattern::broadcast) return (static_cast<double>(nodes) - 1) * bytes;
  return costmodel::through_store(transfer) ? bytes : 0;
}

/// Returns the bytes that a site sends in round `index`, by class, as the mean over the scenario's sites.
inline costmodel::SentBytes sent_in_round(const costmodel::Plan& plan, int sites, std::int64_t index) {
  costmodel::SentBytes sent;
  for (const costmodel::Op& op : plan.round(index).ops) {
    const auto* transfer = std::get_if<costmodel::Transfer>(&op.what);
    if (transfer == nullptr) continue;
    for (const costmodel::Exchange& exchange : transfer->exchanges) {
      for (const costmodel::Payload& payload : exchange.payloads) {
        using costmodel::TrafficClass;
        double& of_class = payload.traffic == TrafficClass::dense         ? sent.dense
                           : payload.traffic == TrafficClass::expert_sync ? sent.expert_sync
                           : payload.traffic == TrafficClass::migration   ? sent.migration
                                                                          : sent.activations;
        const auto bytes = static_cast<double>(payload.bytes());
        const auto first = static_cast<std::size_t>(exchange.nodes[0]);
        const bool store = plan.nodes[first].kind == costmodel::NodeKind::store;
        of_class += (store ? uploaded_bytes(*transfer, exchange.nodes.size(), bytes)
                           : crossing_bytes(plan, transfer->pattern, exchange.nodes, bytes)) /
                    sites;
      }
    }
  }
  return sent;
}

/// Returns the same bytes as the mean over all rounds of the run.
inline costmodel::SentBytes sent_in_mean_round(const costmodel::Plan& plan, int sites) {
  costmodel::SentBytes mean;
  const auto rounds = static_cast<double>(plan.rounds);
  for (std::int64_t index = 0; index < plan.rounds; ++index) {
    const costmodel::SentBytes sent = sent_in_round(plan, sites, index);
    mean.dense += sent.dense / rounds;
    mean.expert_sync += sent.expert_sync / rounds;
    mean.migration += sent.migration / rounds;
    mean.activations += sent.activations / rounds;
  }
  return mean;
}

/// Returns the method's plan with its composition (hierarchical all-reduce, secure aggregation). It lacks the
/// extra traffic, which make_plan adds.
inline costmodel::Plan plan_of(const costmodel::Scenario& scenario) {
  return costmodel::composed_plan(scenario);
}

/// Returns how many operations of the round have this name.
inline int count_named(const costmodel::RoundPlan& round, const std::string& name) {
  int count = 0;
  for (const costmodel::Op& op : round.ops) count += op.name == name ? 1 : 0;
  return count;
}

}  // namespace fomoe::tests
