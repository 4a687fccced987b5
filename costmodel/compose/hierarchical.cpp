#include <map>

#include "costmodel/compose/composition.hpp"
#include "costmodel/plan/regions.hpp"

namespace fomoe::costmodel {

namespace {

// Groups of the exchange's nodes by region. Empty unless the regions divide them evenly into two or more
// groups of two or more nodes.
std::vector<std::vector<NodeId>> region_groups(const Scenario& scenario, const Exchange& exchange) {
  std::map<int, std::vector<NodeId>> by_region;
  const std::vector<int> regions = regions_of_sites(scenario.platform, scenario.strategy.regions);
  for (const NodeId node : exchange.nodes) by_region[regions[static_cast<std::size_t>(node)]].push_back(node);
  std::vector<std::vector<NodeId>> groups;
  for (auto& [region, nodes] : by_region) {
    if (nodes.size() < 2 || nodes.size() != by_region.begin()->second.size()) return {};
    groups.push_back(nodes);
  }
  if (groups.size() < 2) groups.clear();
  return groups;
}

std::vector<Payload> chunk_of(const std::vector<Payload>& payloads, int chunks, int chunk) {
  std::vector<Payload> parts = payloads;
  for (Payload& part : parts) {
    part.elements = chunk_elements(part.elements, chunks, chunk);
    part.chunk = chunk;
    part.chunks = chunks;
  }
  return parts;
}

}  // namespace

Composed with_regions(const Scenario& scenario, const RoundPlan& plain) {
  Composed composed;
  auto& ops = composed.round.ops;
  const auto append = [&](Op op) {
    ops.push_back(std::move(op));
    return static_cast<OpId>(ops.size()) - 1;
  };
  for (Op op : plain.ops) {
    for (OpId& before : op.after) before = composed.last[static_cast<std::size_t>(before)];
    for (OpId& before : op.receive_after) before = composed.last[static_cast<std::size_t>(before)];
    const auto* transfer = std::get_if<Transfer>(&op.what);
    if (transfer == nullptr || transfer->collective != Collective::hierarchical) {
      composed.last.push_back(append(std::move(op)));
      continue;
    }
    Transfer scatter{Pattern::reduce_scatter, Collective::ring, {}};
    Transfer across{transfer->pattern, Collective::ring, {}};
    Transfer gather{Pattern::all_gather, Collective::ring, {}};
    for (const Exchange& exchange : transfer->exchanges) {
      const auto groups = region_groups(scenario, exchange);
      if (transfer->pattern != Pattern::all_reduce || groups.empty()) {
        across.exchanges.push_back(exchange);
        continue;
      }
      for (const std::vector<NodeId>& group : groups) {
        scatter.exchanges.push_back({group, exchange.payloads});
        gather.exchanges.push_back({group, exchange.payloads});
      }
      const int ranks = static_cast<int>(groups.front().size());
      for (int rank = 0; rank < ranks; ++rank) {
        Exchange same_rank{{}, chunk_of(exchange.payloads, ranks, rank)};
        for (const std::vector<NodeId>& group : groups)
          same_rank.nodes.push_back(group[static_cast<std::size_t>(rank)]);
        across.exchanges.push_back(std::move(same_rank));
      }
    }
    Op next = op;
    if (scatter.exchanges.empty()) {
      next.what = std::move(across);
    } else {
      const auto then = [&](const char* where, Transfer what) {
        next.name = op.name + where;
        next.what = std::move(what);
        const OpId id = append(next);
        next.after = {id};
        next.after_earlier.clear();
      };
      then(": scatter inside regions", std::move(scatter));
      then(": between regions", std::move(across));
      next.name = op.name + ": gather inside regions";
      next.what = std::move(gather);
    }
    composed.last.push_back(append(std::move(next)));
  }
  return composed;
}

}  // namespace fomoe::costmodel
