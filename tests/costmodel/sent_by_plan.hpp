// A plan read back as bytes: what every pattern puts on the wire, independent of any executor.
#pragma once
#include <set>

#include "costmodel/plan.hpp"
#include "costmodel/plan_summary.hpp"

namespace fomoe::tests {

/// Copies of S that all nodes together send, of n.
inline double copies_sent(costmodel::Pattern pattern, double n) {
  using costmodel::Pattern;
  switch (pattern) {
    case Pattern::all_reduce:
      return 2 * (n - 1);
    case Pattern::reduce_scatter:
    case Pattern::all_gather:
    case Pattern::all_to_all:  // n senders, all but their own chunk: nS − S
    case Pattern::reduce:
    case Pattern::broadcast:
      return n - 1;
    case Pattern::all_to_all_broadcast:
      return n * (n - 1);
    case Pattern::point_to_point:
      return 1;
  }
  return 0;
}

/// Mean over sites of the bytes that one sends in a round, by class.
inline costmodel::SentBytes<double> sent_by_plan(const costmodel::Plan& plan, std::int64_t index) {
  using costmodel::TrafficClass;
  std::set<int> sites;
  for (const costmodel::Node& node : plan.nodes) sites.insert(node.site);
  costmodel::SentBytes<double> sent;
  for (const costmodel::Op& op : plan.round(index).ops) {
    const auto* transfer = std::get_if<costmodel::Transfer>(&op.what);
    if (transfer == nullptr) continue;
    for (const costmodel::Exchange& exchange : transfer->exchanges) {
      const double copies = copies_sent(transfer->pattern, static_cast<double>(exchange.nodes.size()));
      for (const costmodel::Payload& payload : exchange.payloads) {
        double& of_class = payload.traffic == TrafficClass::dense         ? sent.dense
                           : payload.traffic == TrafficClass::expert_sync ? sent.expert_sync
                           : payload.traffic == TrafficClass::migration   ? sent.migration
                                                                          : sent.activations;
        of_class += copies * static_cast<double>(payload.bytes()) / static_cast<double>(sites.size());
      }
    }
  }
  return sent;
}

}  // namespace fomoe::tests
