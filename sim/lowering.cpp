#include "sim/lowering.hpp"

#include <algorithm>
#include <cassert>

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

std::vector<std::int64_t> chunks_of(const Exchange& exchange, int n) {
  std::vector<std::int64_t> chunks;
  for (int c = 0; c < n; ++c) chunks.push_back(chunk_bytes(exchange, n, c));
  return chunks;
}

void add_ring(LaneBuilder& lane, const Exchange& exchange) {
  const int n = static_cast<int>(exchange.nodes.size());
  const std::vector<std::int64_t> chunks = chunks_of(exchange, n);
  for (int s = 0; s < 2 * (n - 1); ++s) {
    for (int p = 0; p < n; ++p) {
      const int chunk = s < n - 1 ? modulo(p - s, n) : modulo(p + 1 - (s - (n - 1)), n);
      lane.flow(s, exchange.nodes[static_cast<std::size_t>(p)],
                exchange.nodes[static_cast<std::size_t>(modulo(p + 1, n))],
                chunks[static_cast<std::size_t>(chunk)]);
    }
  }
}

void add_direct(LaneBuilder& lane, const Exchange& exchange) {
  const int n = static_cast<int>(exchange.nodes.size());
  const std::vector<std::int64_t> chunks = chunks_of(exchange, n);
  for (int p = 0; p < n; ++p) {
    for (int q = 0; q < n; ++q) {
      if (p == q) continue;
      const NodeId from = exchange.nodes[static_cast<std::size_t>(p)],
                   to = exchange.nodes[static_cast<std::size_t>(q)];
      lane.flow(0, from, to, chunks[static_cast<std::size_t>(q)]);
      lane.flow(1, from, to, chunks[static_cast<std::size_t>(p)]);
    }
  }
}

void add(LaneBuilder& lane, Pattern pattern, const Exchange& exchange) {
  switch (pattern) {
    case Pattern::ring_all_reduce:
      return add_ring(lane, exchange);
    case Pattern::direct_all_reduce:
      return add_direct(lane, exchange);
    case Pattern::point_to_point:
      assert(exchange.nodes.size() == 2);
      return lane.flow(0, exchange.nodes[0], exchange.nodes[1], exchange.bytes());
  }
}

}  // namespace

std::vector<Lane> lower(const costmodel::Transfer& transfer, int nodes, bool bundle) {
  std::vector<Lane> lanes;
  if (bundle) {
    LaneBuilder lane(nodes);
    for (const Exchange& exchange : transfer.exchanges) add(lane, transfer.pattern, exchange);
    lanes.push_back(lane.merged());
  } else {
    for (const Exchange& exchange : transfer.exchanges) {
      LaneBuilder lane(nodes);
      add(lane, transfer.pattern, exchange);
      lanes.push_back(lane.take());
    }
  }
  return lanes;
}

}  // namespace fomoe::sim
