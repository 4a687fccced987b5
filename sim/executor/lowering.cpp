#include "sim/executor/lowering.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "costmodel/plan/collective_steps.hpp"

namespace fomoe::sim {

using costmodel::CollectiveSteps;
using costmodel::Exchange;
using costmodel::NodeId;
using costmodel::Pattern;
using costmodel::Payload;
using costmodel::RingModel;
using costmodel::Sending;
using costmodel::Transfer;

namespace {

/// The sizes of one call of a collective, in bytes.
struct Piece {
  std::int64_t whole = 0;            // S, bytes of the payload
  std::vector<std::int64_t> chunks;  // bytes of the chunks of S, one per node
  std::int64_t result = 0;           // bytes of what a store makes of all S
};

/// The nodes and the sizes of an exchange. Exchanges of equal payloads share their pieces, to save memory.
struct Split {
  std::span<const NodeId> nodes;
  std::shared_ptr<const std::vector<Piece>> pieces;
};

Piece whole_exchange(const Exchange& exchange) {
  const int n = static_cast<int>(exchange.nodes.size());
  Piece piece{exchange.bytes(), {}};
  for (int c = 0; c < n; ++c) piece.chunks.push_back(costmodel::chunk_bytes(exchange, n, c));
  for (const Payload& payload : exchange.payloads) piece.result += payload.result_bytes();
  return piece;
}

void add_pieces(const Payload& payload, int nodes, const costmodel::Pieces& cut, std::vector<Piece>& pieces) {
  for (const std::int64_t elements : cut(payload)) {
    Piece piece{payload.format.bytes(elements), {}, payload.result.value_or(payload.format).bytes(elements)};
    for (int c = 0; c < nodes; ++c)
      piece.chunks.push_back(payload.format.bytes(costmodel::chunk_elements(elements, nodes, c)));
    pieces.push_back(std::move(piece));
  }
}

bool same_sizes(const Exchange& a, const Exchange& b) {
  return a.nodes.size() == b.nodes.size() &&
         std::equal(a.payloads.begin(), a.payloads.end(), b.payloads.begin(), b.payloads.end(),
                    [](const Payload& x, const Payload& y) {
                      return x.elements == y.elements && x.format == y.format && x.result == y.result;
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

CollectiveSteps steps_of(const Transfer& transfer, const Split& exchange) {
  return {transfer.pattern, transfer.collective, static_cast<int>(exchange.nodes.size())};
}

/// Calls `flow(from, to, bytes)` for each flow of one piece of an exchange in step `s`.
template <class Flow>
void add_step(const CollectiveSteps& steps, const Split& exchange, const Piece& piece, int s,
              const Flow& flow) {
  steps.each(s, [&](const Sending& sent) {
    std::int64_t bytes = sent.whole ? piece.whole : sent.result ? piece.result : 0;
    for (int c = sent.first; c < sent.first + sent.count; ++c)
      bytes += piece.chunks[static_cast<std::size_t>(c)];
    flow(exchange.nodes[static_cast<std::size_t>(sent.from)],
         exchange.nodes[static_cast<std::size_t>(sent.to)], bytes);
  });
}

/// Sums the bytes that each pair of nodes sends in one step.
class PairSums {
 public:
  explicit PairSums(int nodes) : nodes_(static_cast<std::size_t>(nodes)), bytes_(nodes_ * nodes_, 0) {}

  void add(NodeId from, NodeId to, std::int64_t bytes) {
    if (bytes == 0) return;
    const std::size_t pair = static_cast<std::size_t>(from) * nodes_ + static_cast<std::size_t>(to);
    if (bytes_[pair] == 0) pairs_.push_back(pair);
    bytes_[pair] += bytes;
  }

  /// Appends one flow per pair with bytes to the channel, in the order of (from, to), and resets the sums to
  /// zero.
  void move_to(Channel& channel, int step) {
    std::sort(pairs_.begin(), pairs_.end());
    for (const std::size_t pair : pairs_) {
      channel.flows.push_back(
          {static_cast<NodeId>(pair / nodes_), static_cast<NodeId>(pair % nodes_), step, bytes_[pair]});
      bytes_[pair] = 0;
    }
    pairs_.clear();
  }

 private:
  std::size_t nodes_;
  std::vector<std::int64_t> bytes_;  // row = from
  std::vector<std::size_t> pairs_;   // indices of nonzero sums
};

Channel channel_of(const Transfer& transfer, std::span<const Split> exchanges, bool fluid, PairSums& sums) {
  Channel channel;
  int steps = 0;
  std::size_t calls = 0;
  for (const Split& exchange : exchanges) {
    steps = std::max(steps, steps_of(transfer, exchange).count());
    calls = std::max(calls, exchange.pieces->size());
  }
  if (steps == 0) return channel;
  channel.steps_per_call = fluid ? 1 : steps;
  channel.steps = static_cast<int>(calls) * channel.steps_per_call;
  for (std::size_t call = 0; call < calls; ++call) {
    const int first = static_cast<int>(call) * channel.steps_per_call;
    for (int s = 0; s < steps; ++s) {
      for (const Split& exchange : exchanges) {
        const CollectiveSteps of_exchange = steps_of(transfer, exchange);
        if (s >= of_exchange.count() || call >= exchange.pieces->size()) continue;
        add_step(of_exchange, exchange, (*exchange.pieces)[call], s,
                 [&](NodeId from, NodeId to, std::int64_t bytes) { sums.add(from, to, bytes); });
      }
      if (!fluid) sums.move_to(channel, first + s);
    }
    if (fluid) sums.move_to(channel, first);
  }
  return channel;
}

/// The channels of a transfer through a store: one for each object, so that an object goes on when all who
/// contribute to it have uploaded it, whatever becomes of others. What the same nodes exchange is one object.
std::vector<Channel> store_channels(const Transfer& transfer, std::span<const Split> exchanges, bool bundle,
                                    PairSums& sums) {
  // The payload of each contributor is an object of its own: a broadcast from it to the others.
  const bool each_alone = transfer.pattern == Pattern::all_to_all_broadcast;
  const Transfer of_object{each_alone ? Pattern::broadcast : transfer.pattern, transfer.collective, {}};
  std::map<std::vector<NodeId>, std::vector<Split>> objects;
  std::vector<Channel> channels;
  const auto add = [&](std::vector<NodeId> nodes, const Split& exchange) {
    if (bundle) {
      objects[std::move(nodes)].push_back(exchange);
    } else {
      const Split alone{nodes, exchange.pieces};
      channels.push_back(channel_of(of_object, {&alone, 1}, false, sums));
    }
  };
  for (const Split& exchange : exchanges) {
    std::vector<NodeId> nodes(exchange.nodes.begin(), exchange.nodes.end());
    if (!each_alone) add(nodes, exchange);
    for (std::size_t p = 1; each_alone && p < nodes.size(); ++p) {
      std::vector<NodeId> from_p = nodes;
      std::swap(from_p[1], from_p[p]);
      add(std::move(from_p), exchange);
    }
  }
  for (auto& [nodes, parts] : objects) {
    for (Split& part : parts) part.nodes = nodes;
    channels.push_back(channel_of(of_object, parts, false, sums));
  }
  return channels;
}

}  // namespace

std::vector<Channel> lower(const Transfer& transfer, int nodes, const LoweringOptions& options) {
  const std::vector<Split> exchanges = split(transfer.exchanges, options.pieces);
  const bool fluid = options.ring_model == RingModel::fluid &&
                     (CollectiveSteps::in_ring(transfer.pattern, transfer.collective) ||
                      CollectiveSteps::in_chain(transfer.pattern, transfer.collective));
  PairSums sums(nodes);
  if (costmodel::through_store(transfer)) return store_channels(transfer, exchanges, options.bundle, sums);
  std::vector<Channel> channels;
  if (options.bundle) {
    std::map<int, std::vector<Split>> by_steps;
    for (const Split& exchange : exchanges)
      by_steps[steps_of(transfer, exchange).count()].push_back(exchange);
    for (const auto& [steps, alike] : by_steps) channels.push_back(channel_of(transfer, alike, fluid, sums));
  } else {
    for (const Split& exchange : exchanges)
      channels.push_back(channel_of(transfer, {&exchange, 1}, fluid, sums));
  }
  return channels;
}

}  // namespace fomoe::sim
