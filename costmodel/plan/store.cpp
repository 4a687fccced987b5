#include "costmodel/plan/store.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace fomoe::costmodel {

WireFormat result_format(const WireFormat& payload, double contributors,
                         const std::optional<double>& result_share) {
  if (!payload.sparse()) return payload;
  WireFormat sparse = payload, dense = payload;
  sparse.kept_share = result_share.value_or(1 - std::pow(1 - payload.kept_share, contributors));
  dense.kept_share = 1;
  dense.index_bits = 0;
  dense.entropy_coded = false;
  return sparse.sparse() && sparse.bytes_per_element() < dense.bytes_per_element() ? sparse : dense;
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
