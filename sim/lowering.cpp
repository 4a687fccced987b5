#include "sim/lowering.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <memory>
#include <span>

namespace fomoe::sim {

using costmodel::Collective;
using costmodel::Exchange;
using costmodel::NodeId;
using costmodel::Pattern;
using costmodel::Payload;
using costmodel::RingModel;
using costmodel::Transfer;

namespace {

/// What one call of a collective sends.
struct Piece {
  std::int64_t whole = 0;            // S
  std::vector<std::int64_t> chunks;  // of S, one per node
};

/// An exchange as bytes: what lowering needs of it. Exchanges of equal payloads share their pieces.
struct Split {
  std::span<const NodeId> nodes;
  std::shared_ptr<const std::vector<Piece>> pieces;
};

Piece whole_exchange(const Exchange& exchange) {
  const int n = static_cast<int>(exchange.nodes.size());
  Piece piece{exchange.bytes(), {}};
  for (int c = 0; c < n; ++c) piece.chunks.push_back(costmodel::chunk_bytes(exchange, n, c));
  return piece;
}

void add_pieces(const Payload& payload, int nodes, const costmodel::Pieces& cut, std::vector<Piece>& pieces) {
  for (const std::int64_t elements : cut(payload)) {
    Piece piece{payload.format.bytes(elements), {}};
    for (int c = 0; c < nodes; ++c)
      piece.chunks.push_back(payload.format.bytes(costmodel::chunk_elements(elements, nodes, c)));
    pieces.push_back(std::move(piece));
  }
}

bool same_sizes(const Exchange& a, const Exchange& b) {
  return a.nodes.size() == b.nodes.size() &&
         std::equal(a.payloads.begin(), a.payloads.end(), b.payloads.begin(), b.payloads.end(),
                    [](const Payload& x, const Payload& y) {
                      return x.elements == y.elements && x.format == y.format;
                    });
}

std::vector<Split> split(const std::vector<Exchange>& exchanges, const costmodel::Pieces& cut) {
  std::vector<Split> splits;
  splits.reserve(exchanges.size());
  for (std::size_t i = 0; i < exchanges.size(); ++i) {
    const Exchange& exchange = exchanges[i];
    if (i > 0 && same_sizes(exchange, exchanges[i - 1])) {
      splits.push_back({exchange.nodes, splits.back().pieces});
      continue;
    }
    auto pieces = std::make_shared<std::vector<Piece>>();
    if (!cut) pieces->push_back(whole_exchange(exchange));
    for (const Payload& payload : exchange.payloads) {
      if (cut) add_pieces(payload, static_cast<int>(exchange.nodes.size()), cut, *pieces);
    }
    splits.push_back({exchange.nodes, std::move(pieces)});
  }
  return splits;
}

/// The flows of one piece of an exchange in one step, handed to `flow(from, to, bytes)`.
template <class Sink>
class Steps {
 public:
  Steps(std::span<const NodeId> nodes, const Piece& piece, const Sink& flow)
      : nodes_(nodes), piece_(piece), flow_(flow) {}

  // Position p sends chunk p + shift to the next.
  void ring(int shift) const {
    const int n = size();
    for (int p = 0; p < n; ++p) flow_(node(p), node((p + 1) % n), chunk(((p + shift) % n + n) % n));
  }
  // Everybody to everybody: bytes(p, q).
  template <class Bytes>
  void all_pairs(const Bytes& bytes) const {
    for (int p = 0; p < size(); ++p) {
      for (int q = 0; q < size(); ++q) {
        if (p != q) flow_(node(p), node(q), bytes(p, q));
      }
    }
  }
  // Position p sends to p xor `distance` the chunks of that one's half, or, doubling, those of its own.
  void exchange_halves(int distance, bool halving) const {
    for (int p = 0; p < size(); ++p) {
      const int q = p ^ distance;
      const int first = (halving ? q : p) / distance * distance;
      std::int64_t bytes = 0;
      for (int c = first; c < first + distance; ++c) bytes += chunk(c);
      flow_(node(p), node(q), bytes);
    }
  }
  void scatter() const {  // chunk q to its owner
    all_pairs([&](int, int q) { return chunk(q); });
  }
  void gather() const {  // the own chunk to everybody
    all_pairs([&](int p, int) { return chunk(p); });
  }
  void pass_on() const {  // everything to the next
    for (int p = 0; p < size(); ++p) flow_(node(p), node((p + 1) % size()), piece_.whole);
  }
  void all_to_all() const {
    all_pairs([&](int, int) { return piece_.whole; });
  }
  void from_first() const {
    for (int p = 1; p < size(); ++p) flow_(node(0), node(p), piece_.whole);
  }
  void to_first() const {
    for (int p = 1; p < size(); ++p) flow_(node(p), node(0), piece_.whole);
  }

 private:
  [[nodiscard]] int size() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] NodeId node(int p) const { return nodes_[static_cast<std::size_t>(p)]; }
  [[nodiscard]] std::int64_t chunk(int c) const { return piece_.chunks[static_cast<std::size_t>(c)]; }

  std::span<const NodeId> nodes_;
  const Piece& piece_;
  const Sink& flow_;
};

bool runs_in_a_ring(const Transfer& transfer) {
  if (transfer.collective != Collective::ring) return false;
  return transfer.pattern == Pattern::all_reduce || transfer.pattern == Pattern::reduce_scatter ||
         transfer.pattern == Pattern::all_gather || transfer.pattern == Pattern::all_to_all_broadcast;
}

bool halves(const Transfer& transfer) {
  return transfer.collective == Collective::recursive &&
         (transfer.pattern == Pattern::all_reduce || transfer.pattern == Pattern::reduce_scatter ||
          transfer.pattern == Pattern::all_gather);
}

int log2_of(int nodes) {
  int log = 0;
  while (1 << log < nodes) ++log;
  return log;
}

int step_count(const Transfer& transfer, const Split& exchange) {
  const int n = static_cast<int>(exchange.nodes.size());
  if (n < 2) return 0;
  const int phases = transfer.pattern == Pattern::all_reduce ? 2 : 1;
  if (halves(transfer)) return phases * log2_of(n);
  return runs_in_a_ring(transfer) ? phases * (n - 1) : phases;
}

template <class Sink>
void add_step(const Transfer& transfer, const Split& exchange, const Piece& piece, int s, const Sink& flow) {
  const Steps<Sink> steps(exchange.nodes, piece, flow);
  const bool ring = runs_in_a_ring(transfer);
  const int n = static_cast<int>(exchange.nodes.size());
  if (halves(transfer)) {
    const int log = log2_of(n);
    assert(1 << log == n);
    const bool halving = transfer.pattern != Pattern::all_gather && s < log;
    return steps.exchange_halves(halving ? n >> (s + 1) : 1 << (s % log), halving);
  }
  switch (transfer.pattern) {
    case Pattern::all_reduce:
      if (ring) return steps.ring(s < n - 1 ? -s : 1 - (s - n + 1));
      return s == 0 ? steps.scatter() : steps.gather();
    case Pattern::reduce_scatter:
      return ring ? steps.ring(-1 - s) : steps.scatter();
    case Pattern::all_gather:
      return ring ? steps.ring(-s) : steps.gather();
    case Pattern::all_to_all:
      return steps.scatter();
    case Pattern::all_to_all_broadcast:
      return ring ? steps.pass_on() : steps.all_to_all();
    case Pattern::reduce:
      return steps.to_first();
    case Pattern::broadcast:
      return steps.from_first();
    case Pattern::point_to_point:
      assert(n == 2);
      return steps.from_first();
  }
  std::abort();
}

/// Adds up what flows between each pair of nodes in one step.
class PairSums {
 public:
  explicit PairSums(int nodes) : nodes_(static_cast<std::size_t>(nodes)), bytes_(nodes_ * nodes_, 0) {}

  void add(NodeId from, NodeId to, std::int64_t bytes) {
    if (bytes == 0) return;
    const std::size_t pair = static_cast<std::size_t>(from) * nodes_ + static_cast<std::size_t>(to);
    if (bytes_[pair] == 0) pairs_.push_back(pair);
    bytes_[pair] += bytes;
  }

  /// Appends a flow for each pair, in the order of their ids, and starts again from nothing.
  void move_to(Lane& lane, int step) {
    std::sort(pairs_.begin(), pairs_.end());
    for (const std::size_t pair : pairs_) {
      lane.flows.push_back(
          {static_cast<NodeId>(pair / nodes_), static_cast<NodeId>(pair % nodes_), step, bytes_[pair]});
      bytes_[pair] = 0;
    }
    pairs_.clear();
  }

 private:
  std::size_t nodes_;
  std::vector<std::int64_t> bytes_;  // row = from
  std::vector<std::size_t> pairs_;   // that are not zero
};

Lane lane_of(const Transfer& transfer, std::span<const Split> exchanges, bool fluid, PairSums& sums) {
  Lane lane;
  int steps = 0;
  std::size_t calls = 0;
  for (const Split& exchange : exchanges) {
    steps = std::max(steps, step_count(transfer, exchange));
    calls = std::max(calls, exchange.pieces->size());
  }
  if (steps == 0) return lane;
  lane.steps_per_call = fluid ? 1 : steps;
  lane.steps = static_cast<int>(calls) * lane.steps_per_call;
  for (std::size_t call = 0; call < calls; ++call) {
    const int first = static_cast<int>(call) * lane.steps_per_call;
    for (int s = 0; s < steps; ++s) {
      for (const Split& exchange : exchanges) {
        if (s >= step_count(transfer, exchange) || call >= exchange.pieces->size()) continue;
        add_step(transfer, exchange, (*exchange.pieces)[call], s,
                 [&](NodeId from, NodeId to, std::int64_t bytes) { sums.add(from, to, bytes); });
      }
      if (!fluid) sums.move_to(lane, first + s);
    }
    if (fluid) sums.move_to(lane, first);
  }
  return lane;
}

}  // namespace

std::vector<Lane> lower(const Transfer& transfer, int nodes, const LoweringOptions& options) {
  const std::vector<Split> exchanges = split(transfer.exchanges, options.pieces);
  const bool fluid = options.ring_model == RingModel::fluid && runs_in_a_ring(transfer);
  PairSums sums(nodes);
  std::vector<Lane> lanes;
  if (options.bundle) {
    lanes.push_back(lane_of(transfer, exchanges, fluid, sums));
  } else {
    for (const Split& exchange : exchanges) lanes.push_back(lane_of(transfer, {&exchange, 1}, fluid, sums));
  }
  return lanes;
}

}  // namespace fomoe::sim
