#include "trainer/collectives.hpp"

#include <algorithm>
#include <iterator>
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
  std::vector<std::unique_ptr<PatternLane>> lanes;  // by piece
};

namespace {

std::vector<std::int64_t> cut(const Payload& payload, const costmodel::Pieces& pieces) {
  if (!pieces || payload.elements == 0) return {payload.elements};
  std::vector<std::int64_t> elements = pieces(payload);
  if (std::accumulate(elements.begin(), elements.end(), std::int64_t{0}) != payload.elements)
    throw std::logic_error("the pieces of a payload are not as long as the payload");
  return elements;
}

}  // namespace

TransferRun::TransferRun(const Transfer& transfer, Transport& transport, const TransferOptions& options)
    : transport_(&transport), channel_(options.channel), lost_(options.lost) {
  const at::Tensor like = at::empty({0}, options.exact_wire ? at::kDouble : at::kFloat);
  std::vector<std::vector<PatternLane*>> calls;
  for (const Exchange& exchange : transfer.exchanges) {
    const bool concerned = std::any_of(exchange.nodes.begin(), exchange.nodes.end(),
                                       [&](NodeId node) { return transport.hosts(node); });
    if (!concerned) continue;
    std::size_t call = 0;  // the pieces of an exchange follow each other, payload after payload
    for (const Payload& payload : exchange.payloads) {
      auto parts = std::make_unique<Cut>(Cut{exchange, payload, {}});
      if (!options.pieces) call = 0;
      for (const std::int64_t elements : cut(payload, options.pieces)) {
        parts->lanes.push_back(
            make_lane(transfer, {exchange, payload, elements}, transport, options.exact_wire, like));
        if (calls.size() <= call) calls.emplace_back();
        calls[call++].push_back(parts->lanes.back().get());
      }
      cuts_.push_back(std::move(parts));
    }
  }
  for (const std::vector<PatternLane*>& lanes : calls) {
    int phases = 0;
    for (const PatternLane* lane : lanes) phases = std::max(phases, lane->phases());
    for (int phase = 0; phase < phases; ++phase) {
      Step& step = steps_.emplace_back(Step{{}, phase});
      std::copy_if(lanes.begin(), lanes.end(), std::back_inserter(step.lanes),
                   [&](const PatternLane* lane) { return phase < lane->phases(); });
    }
  }
}

TransferRun::~TransferRun() = default;

std::unique_ptr<Phase> TransferRun::laid_out(const Step& step) const {
  auto phase = std::make_unique<Phase>(*transport_, channel_);
  for (PatternLane* lane : step.lanes) lane->add_to(*phase, step.phase);
  phase->expect();
  return phase;
}

void TransferRun::expect() {
  if (!steps_.empty() && !first_) first_ = laid_out(steps_.front());
}

void TransferRun::read(const PayloadSource& source) {
  for (const auto& cut : cuts_) {
    for (std::size_t p = 0; p < cut->exchange.nodes.size(); ++p) {
      const auto position = static_cast<int>(p);
      const PayloadAt at{cut->exchange, cut->payload, cut->exchange.nodes[p]};
      if (!transport_->hosts(at.node) || !cut->lanes.front()->contributes(position)) continue;
      const at::Tensor flat = source(at);
      if (flat.numel() != cut->payload.elements)
        throw std::logic_error("a payload is not as long as the plan says");
      std::int64_t begin = 0;
      std::vector<at::Tensor> as_read;
      for (const auto& lane : cut->lanes) {
        const at::Tensor piece = flat.narrow(0, begin, lane->elements());
        if (lost_) as_read.push_back(lane->as_read(piece));
        lane->give(position, piece);
        begin += lane->elements();
      }
      if (lost_) lost_(at, flat, at::cat(as_read));
    }
  }
}

void TransferRun::exchange() {
  const at::NoGradGuard no_grad;
  expect();
  std::unique_ptr<Phase> phase = std::move(first_);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    // What partners send next, they will have while this phase is still under way here.
    std::unique_ptr<Phase> next = s + 1 < steps_.size() ? laid_out(steps_[s + 1]) : nullptr;
    for (PatternLane* lane : steps_[s].lanes) lane->before(steps_[s].phase);
    phase->run();
    for (PatternLane* lane : steps_[s].lanes) lane->after(steps_[s].phase);
    phase = std::move(next);
  }
}

void TransferRun::deliver(const PayloadSink& sink) {
  for (const auto& cut : cuts_) {
    for (std::size_t p = 0; p < cut->exchange.nodes.size(); ++p) {
      const auto position = static_cast<int>(p);
      const PayloadAt at{cut->exchange, cut->payload, cut->exchange.nodes[p]};
      if (!transport_->hosts(at.node) || !cut->lanes.front()->gets_result(position)) continue;
      std::vector<at::Tensor> parts;
      for (const auto& lane : cut->lanes) parts.push_back(lane->result(position));
      sink(at, parts.size() == 1 ? parts.front() : at::cat(parts));
    }
  }
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
  TransferRun run(transfer, transport, options);
  run.read(source);
  run.exchange();
  run.deliver(sink);
}

}  // namespace fomoe::trainer
