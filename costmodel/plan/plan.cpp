#include "costmodel/plan/plan.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace fomoe::costmodel {

std::int64_t Exchange::bytes() const {
  std::int64_t sum = 0;
  for (const Payload& payload : payloads) sum += payload.bytes();
  return sum;
}

platforms::Platform platform_of(const Plan& plan, platforms::Platform effective) {
  for (const PathRate& rate : plan.averaged_paths) {
    effective.change_path(rate.from, rate.to, [&](platforms::Path& path) {
      path.bandwidth_bytes_per_s = rate.bytes_per_s;
      path.shared = -1;
    });
    // These rates have the limits of the ports.
    constexpr double kNeverLimits = 1e18;
    effective.sites[static_cast<std::size_t>(rate.from)].uplink_bytes_per_s = kNeverLimits;
    effective.sites[static_cast<std::size_t>(rate.to)].downlink_bytes_per_s = kNeverLimits;
  }
  return effective;
}

std::int64_t steps_of_round(const Plan& plan, std::int64_t index) {
  std::int64_t full = 1;
  for (const RoundClass& kind : plan.classes) full = std::max(full, kind.steps);
  if (index + 1 < plan.rounds) return full;
  return std::clamp<std::int64_t>(plan.steps - full * (plan.rounds - 1), 1, full);
}

std::int64_t chunk_elements(std::int64_t elements, int chunks, int chunk) {
  return elements / chunks + (chunk < elements % chunks ? 1 : 0);
}

std::int64_t chunk_bytes(const Exchange& exchange, int chunks, int chunk) {
  std::int64_t sum = 0;
  for (const Payload& payload : exchange.payloads) {
    sum += payload.format.bytes(chunk_elements(payload.elements, chunks, chunk));
  }
  return sum;
}

Transfer average_through_store(const platforms::Store& store, NodeId node, std::vector<Exchange> exchanges) {
  for (Exchange& exchange : exchanges) {
    const auto contributors = static_cast<double>(exchange.nodes.size());
    for (Payload& payload : exchange.payloads) {
      if (store.aggregates && payload.format.sparse())
        payload.result = result_format(payload.format, contributors, store.result_share);
    }
    exchange.nodes.insert(exchange.nodes.begin(), node);
  }
  return {store.aggregates ? Pattern::all_reduce : Pattern::all_to_all_broadcast, Collective::store,
          std::move(exchanges)};
}

Transfer relayed_by_store(NodeId node, std::vector<Exchange> exchanges) {
  for (Exchange& exchange : exchanges) exchange.nodes.insert(exchange.nodes.begin(), node);
  return {Pattern::broadcast, Collective::store, std::move(exchanges)};
}

namespace {

bool is_store(const std::vector<Node>& nodes, NodeId node) {
  return nodes[static_cast<std::size_t>(node)].kind == NodeKind::store;
}

/// Requests for one object among `others` nodes beside the store.
double requests_of(Pattern pattern, double others) {
  switch (pattern) {
    case Pattern::all_reduce:
      return 2 * others;
    case Pattern::all_to_all_broadcast:
      return others + others * (others - 1);
    case Pattern::broadcast:  // from nodes[1] to the others
      return others;
    default:
      return 0;
  }
}

}  // namespace

double store_requests(const std::vector<Node>& nodes, const RoundPlan& round) {
  double requests = 0;
  for (const Op& op : round.ops) {
    const auto* transfer = std::get_if<Transfer>(&op.what);
    if (transfer == nullptr) continue;
    std::set<std::vector<NodeId>> objects;
    for (const Exchange& exchange : transfer->exchanges) {
      const bool of_store = !exchange.nodes.empty() && is_store(nodes, exchange.nodes[0]);
      if (!of_store || !objects.insert(exchange.nodes).second) continue;
      const auto others = static_cast<double>(exchange.nodes.size()) - 1;
      // A store that is an end of a reduce or a broadcast itself has one request from each other node.
      requests += through_store(*transfer) ? requests_of(transfer->pattern, others) : others;
    }
  }
  return requests;
}

}  // namespace fomoe::costmodel
