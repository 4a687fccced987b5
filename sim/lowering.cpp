#include "sim/lowering.hpp"

#include <algorithm>
#include <cassert>
#include <map>

namespace fomoe::sim {

using costmodel::Collective;
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
  std::int64_t whole = 0;            // S
  std::vector<std::int64_t> chunks;  // of S, one per node
};

Split split(const Exchange& exchange) {
  const int n = static_cast<int>(exchange.nodes.size());
  Split result{exchange.nodes, exchange.bytes(), {}};
  for (int c = 0; c < n; ++c) result.chunks.push_back(chunk_bytes(exchange, n, c));
  return result;
}

// Steps first … first + n − 2 around the ring; at step s position p sends chunk p + shift − s to the next.
void add_ring(LaneBuilder& lane, const Split& exchange, int first, int shift) {
  const int n = static_cast<int>(exchange.nodes.size());
  for (int s = 0; s < n - 1; ++s) {
    for (int p = 0; p < n; ++p) {
      lane.flow(first + s, exchange.nodes[static_cast<std::size_t>(p)],
                exchange.nodes[static_cast<std::size_t>(modulo(p + 1, n))],
                exchange.chunks[static_cast<std::size_t>(modulo(p + shift - s, n))]);
    }
  }
}

// Everybody to everybody in one step: bytes(p, q).
template <class Bytes>
void add_all_pairs(LaneBuilder& lane, const Split& exchange, int step, Bytes bytes) {
  for (std::size_t p = 0; p < exchange.nodes.size(); ++p) {
    for (std::size_t q = 0; q < exchange.nodes.size(); ++q) {
      if (p != q) lane.flow(step, exchange.nodes[p], exchange.nodes[q], bytes(p, q));
    }
  }
}

void add(LaneBuilder& lane, Pattern pattern, Collective collective, const Split& exchange) {
  const bool ring = collective == Collective::ring;
  const int n = static_cast<int>(exchange.nodes.size());
  const auto to_chunk_owner = [&](std::size_t, std::size_t q) { return exchange.chunks[q]; };
  const auto own_chunk = [&](std::size_t p, std::size_t) { return exchange.chunks[p]; };
  const auto whole = [&](std::size_t, std::size_t) { return exchange.whole; };
  switch (pattern) {
    case Pattern::all_reduce:
      if (ring) {
        add_ring(lane, exchange, 0, 0);
        add_ring(lane, exchange, n - 1, 1);
      } else {
        add_all_pairs(lane, exchange, 0, to_chunk_owner);
        add_all_pairs(lane, exchange, 1, own_chunk);
      }
      return;
    case Pattern::reduce_scatter:
      return ring ? add_ring(lane, exchange, 0, -1) : add_all_pairs(lane, exchange, 0, to_chunk_owner);
    case Pattern::all_gather:
      return ring ? add_ring(lane, exchange, 0, 0) : add_all_pairs(lane, exchange, 0, own_chunk);
    case Pattern::all_to_all:
      return add_all_pairs(lane, exchange, 0, to_chunk_owner);
    case Pattern::all_to_all_broadcast:
      if (!ring) return add_all_pairs(lane, exchange, 0, whole);
      for (int s = 0; s < n - 1; ++s) {  // everybody passes on what came last
        for (int p = 0; p < n; ++p) {
          lane.flow(s, exchange.nodes[static_cast<std::size_t>(p)],
                    exchange.nodes[static_cast<std::size_t>(modulo(p + 1, n))], exchange.whole);
        }
      }
      return;
    case Pattern::reduce:
      for (std::size_t p = 1; p < exchange.nodes.size(); ++p)
        lane.flow(0, exchange.nodes[p], exchange.nodes[0], exchange.whole);
      return;
    case Pattern::broadcast:
      for (std::size_t p = 1; p < exchange.nodes.size(); ++p)
        lane.flow(0, exchange.nodes[0], exchange.nodes[p], exchange.whole);
      return;
    case Pattern::point_to_point:
      assert(n == 2);
      return lane.flow(0, exchange.nodes[0], exchange.nodes[1], exchange.whole);
  }
}

// Exchanges among the same nodes, in the same order, added up.
std::vector<Split> merged_by_nodes(const std::vector<Exchange>& exchanges) {
  std::map<std::vector<NodeId>, Split> by_nodes;
  for (const Exchange& exchange : exchanges) {
    Split one = split(exchange);
    auto [it, inserted] = by_nodes.try_emplace(one.nodes, one);
    if (inserted) continue;
    it->second.whole += one.whole;
    for (std::size_t c = 0; c < one.chunks.size(); ++c) it->second.chunks[c] += one.chunks[c];
  }
  std::vector<Split> merged;
  for (auto& [nodes, exchange] : by_nodes) merged.push_back(std::move(exchange));
  return merged;
}

}  // namespace

std::vector<Lane> lower(const costmodel::Transfer& transfer, int nodes, bool bundle) {
  std::vector<Lane> lanes;
  if (bundle) {
    LaneBuilder lane(nodes);
    for (const Split& exchange : merged_by_nodes(transfer.exchanges))
      add(lane, transfer.pattern, transfer.collective, exchange);
    lanes.push_back(lane.merged());
  } else {
    for (const Exchange& exchange : transfer.exchanges) {
      LaneBuilder lane(nodes);
      add(lane, transfer.pattern, transfer.collective, split(exchange));
      lanes.push_back(lane.take());
    }
  }
  return lanes;
}

}  // namespace fomoe::sim
