#include "trainer/collectives.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "trainer/pattern_lane.hpp"
#include "trainer/phase.hpp"

namespace fomoe::trainer {

using costmodel::Exchange;
using costmodel::NodeId;
using costmodel::Payload;
using costmodel::Transfer;

/// A payload of an exchange, cut into the pieces that its calls send.
struct TransferRun::Cut {
  const Exchange& exchange;
  const Payload& payload;
  bool from_partial = false, to_partial = false;
  std::vector<std::unique_ptr<PatternLane>> lanes = {};  // by piece
  std::size_t first_call = 0;                            // of the transfer, which sends the first piece

  [[nodiscard]] std::int64_t given(int position) const {
    std::int64_t sum = 0;
    for (const auto& lane : lanes) sum += lane->given(position);
    return sum;
  }
  void give(int position, const at::Tensor& flat) {
    if (flat.numel() != given(position)) throw std::logic_error("a payload is not as long as the plan says");
    std::int64_t begin = 0;
    for (const auto& lane : lanes) {
      lane->give(position, flat.narrow(0, begin, lane->given(position)));
      begin += lane->given(position);
    }
  }
  [[nodiscard]] at::Tensor as_read(const at::Tensor& flat) const {
    std::int64_t begin = 0;
    std::vector<at::Tensor> parts;
    for (const auto& lane : lanes) {
      parts.push_back(lane->as_read(flat.narrow(0, begin, lane->elements())));
      begin += lane->elements();
    }
    return at::cat(parts);
  }
  [[nodiscard]] at::Tensor result(int position) {
    std::vector<at::Tensor> parts;
    for (const auto& lane : lanes) parts.push_back(lane->result(position));
    return parts.size() == 1 ? parts.front() : at::cat(parts);
  }
};

void PartialMeans::put(Key key, at::Tensor chunk) {
  const std::lock_guard lock(mutex_);
  chunks_.insert_or_assign(std::move(key), std::move(chunk));
}

at::Tensor PartialMeans::take(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = chunks_.find(key);
  if (found == chunks_.end()) throw std::logic_error("a chunk is sent on that nobody has left");
  at::Tensor chunk = std::move(found->second);
  chunks_.erase(found);
  return chunk;
}

bool from_partial(const Transfer& transfer, const Payload& payload) {
  return transfer.pattern == costmodel::Pattern::all_gather || payload.chunks > 1;
}

bool to_partial(const Transfer& transfer, const Payload& payload) {
  return transfer.pattern == costmodel::Pattern::reduce_scatter || payload.chunks > 1;
}

namespace {

std::vector<std::int64_t> cut(const Payload& payload, const costmodel::Pieces& pieces) {
  if (!pieces || payload.elements == 0) return {payload.elements};
  std::vector<std::int64_t> elements = pieces(payload);
  if (std::accumulate(elements.begin(), elements.end(), std::int64_t{0}) != payload.elements)
    throw std::logic_error("the pieces of a payload are not as long as the payload");
  return elements;
}

}  // namespace

TransferRun::TransferRun(const Transfer& transfer, Transport& transport, const PayloadSource& source,
                         const TransferOptions& options)
    : transport_(&transport), options_(options) {
  const at::Tensor like = at::empty({0}, options.exact_wire ? at::kDouble : at::kFloat);
  for (const Exchange& exchange : transfer.exchanges) {
    const bool concerned = std::any_of(exchange.nodes.begin(), exchange.nodes.end(),
                                       [&](NodeId node) { return transport.hosts(node); });
    if (!concerned) continue;
    std::size_t call = 0;  // the pieces of an exchange follow each other, payload after payload
    for (const Payload& payload : exchange.payloads) {
      auto parts = std::make_unique<Cut>(
          Cut{exchange, payload, from_partial(transfer, payload), to_partial(transfer, payload)});
      parts->first_call = options.pieces ? call : 0;
      for (const std::int64_t elements : cut(payload, options.pieces))
        parts->lanes.push_back(
            make_lane(transfer, {exchange, payload, elements}, transport, options.exact_wire, like));
      call += parts->lanes.size();
      calls_ = std::max(calls_, options.pieces ? call : 1);
      cuts_.push_back(std::move(parts));
    }
  }
  at_hosted([&](Cut& cut, int position, const PayloadAt& at) {
    if (cut.from_partial || !cut.lanes.front()->contributes(position)) return;
    const at::Tensor flat = source(at);
    cut.give(position, flat);
    if (options_.lost) options_.lost(at, flat, cut.as_read(flat));
  });
}

TransferRun::~TransferRun() = default;

void TransferRun::at_hosted(const AtNode& visit) {
  for (const auto& cut : cuts_) {
    for (std::size_t p = 0; p < cut->exchange.nodes.size(); ++p) {
      const PayloadAt at{cut->exchange, cut->payload, cut->exchange.nodes[p]};
      if (transport_->hosts(at.node)) visit(*cut, static_cast<int>(p), at);
    }
  }
}

PartialMeans::Key TransferRun::key(const PayloadAt& at) const {
  return {options_.round, at.node, at.payload.content, at.payload.groups};
}

void TransferRun::exchange() {
  at_hosted([&](Cut& cut, int position, const PayloadAt& at) {
    if (cut.from_partial) cut.give(position, options_.partial->take(key(at)));
  });
  for (std::size_t call = 0; call < calls_; ++call) this->call(call);
  at_hosted([&](Cut& cut, int position, const PayloadAt& at) {
    if (cut.to_partial) options_.partial->put(key(at), cut.result(position).clone());
  });
  std::erase_if(cuts_, [](const auto& cut) { return cut->to_partial; });  // nothing of them is delivered
}

void TransferRun::call(std::size_t call) {
  const at::NoGradGuard no_grad;
  std::vector<PatternLane*> lanes;
  int phases = 0;
  for (const auto& cut : cuts_) {
    if (call < cut->first_call || call - cut->first_call >= cut->lanes.size()) continue;
    lanes.push_back(cut->lanes[call - cut->first_call].get());
    phases = std::max(phases, lanes.back()->phases());
  }
  for (int step = 0; step < phases; ++step) {
    Phase phase(*transport_, options_.channel);
    for (PatternLane* lane : lanes) {
      if (step < lane->phases()) lane->add_to(phase, step);
    }
    phase.run();
    for (PatternLane* lane : lanes) {
      if (step < lane->phases()) lane->after(step);
    }
  }
}

void TransferRun::deliver(const PayloadSink& sink) {
  at_hosted([&](Cut& cut, int position, const PayloadAt& at) {
    if (cut.lanes.front()->gets_result(position)) sink(at, cut.result(position));
  });
}

at::Tensor as_read(const Payload& payload, const at::Tensor& flat, const TransferOptions& options) {
  const at::NoGradGuard no_grad;
  const WireCodec codec(payload.format, options.exact_wire);
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (const std::int64_t elements : cut(payload, options.pieces)) {
    parts.push_back(codec.round_trip(flat.narrow(0, begin, elements)));
    begin += elements;
  }
  return at::cat(parts);
}

void run_transfer(const Transfer& transfer, Transport& transport, const PayloadSource& source,
                  const PayloadSink& sink, const TransferOptions& options) {
  TransferRun run(transfer, transport, source, options);
  run.exchange();
  run.deliver(sink);
}

}  // namespace fomoe::trainer
