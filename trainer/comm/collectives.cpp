#include "trainer/comm/collectives.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "trainer/comm/pattern_run.hpp"
#include "trainer/comm/phase.hpp"

namespace fomoe::trainer {

using costmodel::Exchange;
using costmodel::NodeId;
using costmodel::Payload;
using costmodel::Transfer;

/// One payload of an exchange, cut into the pieces that separate calls send.
struct TransferRun::Cut {
  const Exchange& exchange;
  const Payload& payload;
  bool from_partial = false, to_partial = false, keeps_losses = false;
  std::vector<std::unique_ptr<PatternRun>> runs = {};  // one per piece

  [[nodiscard]] std::int64_t given(int position) const {
    std::int64_t sum = 0;
    for (const auto& run : runs) sum += run->given(position);
    return sum;
  }
  void give(int position, const at::Tensor& flat) {
    if (flat.numel() != given(position))
      throw std::logic_error("the length of a payload differs from its length in the plan");
    std::int64_t begin = 0;
    for (const auto& run : runs) {
      run->give(position, flat.narrow(0, begin, run->given(position)));
      begin += run->given(position);
    }
  }
  [[nodiscard]] at::Tensor lost(int position) {
    std::vector<at::Tensor> parts;
    for (const auto& run : runs) parts.push_back(run->lost(position));
    return at::cat(parts);
  }
  [[nodiscard]] at::Tensor result(int position) {
    std::vector<at::Tensor> parts;
    for (const auto& run : runs) parts.push_back(run->result(position));
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
  if (found == chunks_.end())
    throw std::logic_error("this transfer sends a chunk that no earlier transfer has produced");
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
    throw std::logic_error("the lengths of a payload's pieces do not add up to the length of the payload");
  return elements;
}

}  // namespace

TransferRun::TransferRun(const Transfer& transfer, Transport& transport, const TransferOptions& options)
    : transport_(&transport), options_(options) {
  const at::Tensor like =
      at::empty({0}, at::device(options.device).dtype(options.exact_wire ? at::kDouble : at::kFloat));
  const costmodel::Pieces pieces =  // an object is never split
      costmodel::through_store(transfer) ? costmodel::Pieces() : options.pieces;
  std::map<std::vector<NodeId>, std::size_t> objects;
  std::vector<std::vector<PatternRun*>> calls;
  for (const Exchange& exchange : transfer.exchanges) {
    // the number is the same at all processes, whatever they are concerned with
    const int object = static_cast<int>(objects.try_emplace(exchange.nodes, objects.size()).first->second);
    const bool concerned = std::any_of(exchange.nodes.begin(), exchange.nodes.end(),
                                       [&](NodeId node) { return transport.hosts(node); });
    if (!concerned) continue;
    std::size_t call = 0;  // the calls of an exchange count through the pieces of all its payloads
    for (const Payload& payload : exchange.payloads) {
      auto parts = std::make_unique<Cut>(
          Cut{exchange, payload, from_partial(transfer, payload), to_partial(transfer, payload)});
      if (!pieces) call = 0;
      for (const std::int64_t elements : cut(payload, pieces)) {
        parts->runs.push_back(make_pattern_run(transfer, {exchange, payload, elements, object}, transport,
                                               options.exact_wire, like));
        if (calls.size() <= call) calls.emplace_back();
        calls[call++].push_back(parts->runs.back().get());
      }
      // A node alone keeps its own values, of which no wire format takes anything.
      parts->keeps_losses = options.lost && !parts->from_partial && exchange.nodes.size() > 1;
      if (parts->keeps_losses)
        for (const auto& run : parts->runs) run->track_losses();
      cuts_.push_back(std::move(parts));
    }
  }
  for (const std::vector<PatternRun*>& runs : calls) {
    int phases = 0;
    for (const PatternRun* run : runs) phases = std::max(phases, run->phases());
    for (int phase = 0; phase < phases; ++phase) {
      Step& step = steps_.emplace_back(Step{{}, phase});
      std::copy_if(runs.begin(), runs.end(), std::back_inserter(step.runs),
                   [&](const PatternRun* run) { return phase < run->phases(); });
    }
  }
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

void TransferRun::post_before(std::size_t end) {
  for (; next_ < std::min(end, steps_.size()); ++next_) {
    const Step& step = steps_[next_];
    auto phase = std::make_unique<Phase>(*transport_, options_.channel, options_.device);
    for (PatternRun* run : step.runs) run->add_to(*phase, step.phase);
    phase->expect();
    posted_.push_back(std::move(phase));
  }
}

void TransferRun::expect() { post_before(static_cast<std::size_t>(options_.receives_ahead)); }

void TransferRun::read(const PayloadSource& source) {
  at_hosted([&](Cut& cut, int position, const PayloadAt& at) {
    if (cut.from_partial || !cut.runs.front()->contributes(position)) return;
    cut.give(position, source(at));
  });
}

void TransferRun::exchange() {
  const at::NoGradGuard no_grad;
  expect();
  at_hosted([&](Cut& cut, int position, const PayloadAt& at) {
    if (cut.from_partial) cut.give(position, options_.partial->take(key(at)));
  });
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    // Partners send the next phases' data while this phase is still under way here.
    post_before(s + 1 + static_cast<std::size_t>(options_.receives_ahead));
    for (PatternRun* run : steps_[s].runs) run->before(steps_[s].phase);
    posted_.front()->run();
    for (PatternRun* run : steps_[s].runs) run->after(steps_[s].phase);
    posted_.pop_front();
  }
  at_hosted([&](Cut& cut, int position, const PayloadAt& at) {
    if (!cut.to_partial) return;
    options_.partial->put(key(at), cut.result(position).clone());
    if (cut.keeps_losses) losses_.emplace_back(at, cut.lost(position));
  });
  // these payloads are not delivered to a model
  std::erase_if(cuts_, [](const auto& cut) { return cut->to_partial; });
}

void TransferRun::deliver(const PayloadSink& sink) {
  for (const auto& [at, lost] : losses_) options_.lost(at, lost);
  at_hosted([&](Cut& cut, int position, const PayloadAt& at) {
    if (cut.keeps_losses && cut.runs.front()->contributes(position)) options_.lost(at, cut.lost(position));
    if (cut.runs.front()->gets_result(position)) sink(at, cut.result(position));
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
  TransferRun run(transfer, transport, options);
  run.read(source);
  run.exchange();
  run.deliver(sink);
}

}  // namespace fomoe::trainer
