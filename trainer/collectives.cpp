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
  std::vector<std::unique_ptr<PatternLane>> lanes;  // by piece
  std::size_t first_call = 0;                       // of the transfer, which sends the first piece
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

TransferRun::TransferRun(const Transfer& transfer, Transport& transport, const PayloadSource& source,
                         const TransferOptions& options)
    : transport_(&transport), channel_(options.channel) {
  const at::Tensor like = at::empty({0}, options.exact_wire ? at::kDouble : at::kFloat);
  for (const Exchange& exchange : transfer.exchanges) {
    const bool concerned = std::any_of(exchange.nodes.begin(), exchange.nodes.end(),
                                       [&](NodeId node) { return transport.hosts(node); });
    if (!concerned) continue;
    std::size_t call = 0;  // the pieces of an exchange follow each other, payload after payload
    for (const Payload& payload : exchange.payloads) {
      auto parts = std::make_unique<Cut>(Cut{exchange, payload, {}, options.pieces ? call : 0});
      for (const std::int64_t elements : cut(payload, options.pieces))
        parts->lanes.push_back(
            make_lane(transfer, {exchange, payload, elements}, transport, options.exact_wire, like));
      call += parts->lanes.size();
      calls_ = std::max(calls_, options.pieces ? call : 1);
      read(*parts, source, options.lost);
      cuts_.push_back(std::move(parts));
    }
  }
}

TransferRun::~TransferRun() = default;

void TransferRun::read(Cut& cut, const PayloadSource& source, const LossSink& lost) {
  for (std::size_t p = 0; p < cut.exchange.nodes.size(); ++p) {
    const auto position = static_cast<int>(p);
    const PayloadAt at{cut.exchange, cut.payload, cut.exchange.nodes[p]};
    if (!transport_->hosts(at.node) || !cut.lanes.front()->contributes(position)) continue;
    const at::Tensor flat = source(at);
    if (flat.numel() != cut.payload.elements)
      throw std::logic_error("a payload is not as long as the plan says");
    std::int64_t begin = 0;
    std::vector<at::Tensor> as_read;
    for (const auto& lane : cut.lanes) {
      const at::Tensor piece = flat.narrow(0, begin, lane->elements());
      if (lost) as_read.push_back(lane->as_read(piece));
      lane->give(position, piece);
      begin += lane->elements();
    }
    if (lost) lost(at, flat, at::cat(as_read));
  }
}

void TransferRun::exchange() {
  for (std::size_t call = 0; call < calls_; ++call) this->call(call);
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
    Phase phase(*transport_, channel_);
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
  TransferRun run(transfer, transport, source, options);
  run.exchange();
  run.deliver(sink);
}

}  // namespace fomoe::trainer
