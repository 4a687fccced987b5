#include "costmodel/plan/absences.hpp"

#include <algorithm>

namespace fomoe::costmodel {
namespace {

/// One round of each kind: the first and the last of each class.
std::vector<RoundPlan> examples(const Plan& plan) {
  std::vector<RoundPlan> out;
  for (const RoundClass& kind : plan.classes) {
    if (kind.count == 0) continue;
    out.push_back(plan.round(kind.round_at(0)));
    if (kind.count > 1) out.push_back(plan.round(kind.round_at(kind.count - 1)));
  }
  return out;
}

bool same(const Placement& a, const Placement& b) {
  for (int layer = 0; layer < a.layers(); ++layer) {
    for (int expert = 0; expert < a.experts(); ++expert) {
      const auto of_a = a.owners(layer, expert), of_b = b.owners(layer, expert);
      if (!std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end())) return false;
    }
  }
  return true;
}

/// Random placements are drawn anew at each reshuffle. With few experts and sites, a draw may equal the first
/// placement, so one comparison is not enough.
bool placement_changes(const Plan& plan) {
  constexpr std::int64_t kMostCompared = 1000;
  if (!plan.placement) return false;
  const Placement first = plan.placement(0);
  for (std::int64_t round = 1; round <= std::min(plan.rounds, kMostCompared); ++round) {
    if (!same(first, plan.placement(round))) return true;
  }
  return !same(first, plan.placement(plan.rounds));
}

bool has_chunks(const Transfer& transfer) {
  return transfer.pattern == Pattern::reduce_scatter || transfer.pattern == Pattern::all_gather ||
         std::any_of(transfer.exchanges.begin(), transfer.exchanges.end(), [](const Exchange& exchange) {
           return std::any_of(exchange.payloads.begin(), exchange.payloads.end(),
                              [](const Payload& payload) { return payload.chunks > 1; });
         });
}

bool has_ends(Pattern pattern) {
  return pattern == Pattern::reduce || pattern == Pattern::broadcast || pattern == Pattern::point_to_point;
}

}  // namespace

std::string needs_all_nodes(const Plan& plan) {
  if (placement_changes(plan)) return "migration";
  for (const RoundPlan& round : examples(plan)) {
    for (const Op& op : round.ops) {
      const auto* transfer = std::get_if<Transfer>(&op.what);
      if (transfer != nullptr && (has_chunks(*transfer) || transfer->collective == Collective::recursive ||
                                  transfer->collective == Collective::chain))
        return op.name;
    }
  }
  return {};
}

std::vector<bool> indispensable_nodes(const Plan& plan) {
  std::vector<bool> out(plan.nodes.size(), false);
  for (const RoundPlan& round : examples(plan)) {
    for (const Op& op : round.ops) {
      const auto* transfer = std::get_if<Transfer>(&op.what);
      if (transfer == nullptr || !has_ends(transfer->pattern)) continue;
      for (const Exchange& exchange : transfer->exchanges) {
        out[static_cast<std::size_t>(exchange.nodes[0])] = true;
        if (transfer->pattern == Pattern::point_to_point)
          out[static_cast<std::size_t>(exchange.nodes[1])] = true;
      }
    }
  }
  return out;
}

bool takes_part(const Op& op, NodeId node) {
  const auto among = [&](const std::vector<NodeId>& nodes) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  if (const auto* compute = std::get_if<Compute>(&op.what)) return among(compute->nodes);
  const auto& exchanges = std::get<Transfer>(op.what).exchanges;
  return std::any_of(exchanges.begin(), exchanges.end(), [&](const Exchange& exchange) {
    return exchange.nodes.size() > 1 && among(exchange.nodes);
  });
}

RoundPlan without(RoundPlan round, const std::vector<bool>& absent) {
  const auto leave_out = [&](std::vector<NodeId>& nodes) {
    std::erase_if(nodes, [&](NodeId node) { return absent[static_cast<std::size_t>(node)]; });
  };
  for (Op& op : round.ops) {
    if (auto* compute = std::get_if<Compute>(&op.what)) {
      leave_out(compute->nodes);
      continue;
    }
    auto& transfer = std::get<Transfer>(op.what);
    auto& exchanges = transfer.exchanges;
    for (Exchange& exchange : exchanges) leave_out(exchange.nodes);
    // A node that is left alone takes its own difference for the average. An outer step that updates only
    // what was averaged would otherwise leave it out.
    const bool averages = transfer.pattern == Pattern::all_reduce && !through_store(transfer);
    std::erase_if(exchanges,
                  [&](const Exchange& exchange) { return exchange.nodes.size() < (averages ? 1 : 2); });
  }
  return round;
}

}  // namespace fomoe::costmodel
