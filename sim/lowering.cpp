#include "sim/lowering.hpp"

#include <algorithm>
#include <cassert>
#include <map>

namespace fomoe::sim {

using costmodel::Exchange;
using costmodel::NodeId;
using costmodel::Pattern;

namespace {

int modulo(int a, int n) { return ((a % n) + n) % n; }

class LaneBuilder {
 public:
  explicit LaneBuilder(int nodes) : nodes_(nodes) { lane_.steps.resize(static_cast<std::size_t>(nodes)); }

  void flow(int step, NodeId from, NodeId to, std::int64_t bytes) {
    if (bytes == 0) return;
    at(from, step).sends.push_back({to, bytes});
    at(to, step).receives.push_back({from, bytes});
  }

  /// One flow between two nodes in a step: equal peers are summed, in order of their ids.
  Lane merged() {
    std::vector<std::int64_t> sum(static_cast<std::size_t>(nodes_), 0);
    const auto merge = [&](std::vector<Flow>& flows) {
      for (const Flow& flow : flows) sum[static_cast<std::size_t>(flow.peer)] += flow.bytes;
      flows.clear();
      for (NodeId peer = 0; peer < nodes_; ++peer) {
        std::int64_t& bytes = sum[static_cast<std::size_t>(peer)];
        if (bytes > 0) flows.push_back({peer, bytes});
        bytes = 0;
      }
    };
    for (auto& steps : lane_.steps) {
      for (Step& step : steps) {
        merge(step.sends);
        merge(step.receives);
      }
    }
    return std::move(lane_);
  }

  Lane take() { return std::move(lane_); }

 private:
  Step& at(NodeId node, int step) {
    auto& steps = lane_.steps[static_cast<std::size_t>(node)];
    if (steps.size() <= static_cast<std::size_t>(step)) steps.resize(static_cast<std::size_t>(step) + 1);
    return steps[static_cast<std::size_t>(step)];
  }

  int nodes_;
  Lane lane_;
};

// An exchange as bytes: what lowering needs of it, and what bundles by adding.
struct Split {
  std::vector<NodeId> nodes;
  std::vector<std::int64_t> chunks;  // one chunk per node; of a point-to-point transfer, one in all
};

Split split(Pattern pattern, const Exchange& exchange) {
  if (pattern == Pattern::point_to_point) {
    assert(exchange.nodes.size() == 2);
    return {exchange.nodes, {exchange.bytes()}};
  }
  const int n = static_cast<int>(exchange.nodes.size());
  Split result{exchange.nodes, {}};
  for (int c = 0; c < n; ++c) result.chunks.push_back(chunk_bytes(exchange, n, c));
  return result;
}

void add_ring(LaneBuilder& lane, const Split& exchange) {
  const int n = static_cast<int>(exchange.nodes.size());
  for (int s = 0; s < 2 * (n - 1); ++s) {
    for (int p = 0; p < n; ++p) {
      const int chunk = s < n - 1 ? modulo(p - s, n) : modulo(p + 1 - (s - (n - 1)), n);
      lane.flow(s, exchange.nodes[static_cast<std::size_t>(p)],
                exchange.nodes[static_cast<std::size_t>(modulo(p + 1, n))],
                exchange.chunks[static_cast<std::size_t>(chunk)]);
    }
  }
}

void add_direct(LaneBuilder& lane, const Split& exchange) {
  const std::size_t n = exchange.nodes.size();
  for (std::size_t p = 0; p < n; ++p) {
    for (std::size_t q = 0; q < n; ++q) {
      if (p == q) continue;
      lane.flow(0, exchange.nodes[p], exchange.nodes[q], exchange.chunks[q]);
      lane.flow(1, exchange.nodes[p], exchange.nodes[q], exchange.chunks[p]);
    }
  }
}

void add(LaneBuilder& lane, Pattern pattern, const Split& exchange) {
  switch (pattern) {
    case Pattern::ring_all_reduce:
      return add_ring(lane, exchange);
    case Pattern::direct_all_reduce:
      return add_direct(lane, exchange);
    case Pattern::point_to_point:
      return lane.flow(0, exchange.nodes[0], exchange.nodes[1], exchange.chunks[0]);
  }
}

// Exchanges among the same nodes, in the same order, added up.
std::vector<Split> merged_by_nodes(Pattern pattern, const std::vector<Exchange>& exchanges) {
  std::map<std::vector<NodeId>, std::vector<std::int64_t>> chunks_of;
  for (const Exchange& exchange : exchanges) {
    const Split one = split(pattern, exchange);
    auto& chunks = chunks_of[one.nodes];
    chunks.resize(one.chunks.size(), 0);
    for (std::size_t c = 0; c < chunks.size(); ++c) chunks[c] += one.chunks[c];
  }
  std::vector<Split> merged;
  for (auto& [nodes, chunks] : chunks_of) merged.push_back({nodes, std::move(chunks)});
  return merged;
}

}  // namespace

std::vector<Lane> lower(const costmodel::Transfer& transfer, int nodes, bool bundle) {
  std::vector<Lane> lanes;
  if (bundle) {
    LaneBuilder lane(nodes);
    for (const Split& exchange : merged_by_nodes(transfer.pattern, transfer.exchanges))
      add(lane, transfer.pattern, exchange);
    lanes.push_back(lane.merged());
  } else {
    for (const Exchange& exchange : transfer.exchanges) {
      LaneBuilder lane(nodes);
      add(lane, transfer.pattern, split(transfer.pattern, exchange));
      lanes.push_back(lane.take());
    }
  }
  return lanes;
}

}  // namespace fomoe::sim
