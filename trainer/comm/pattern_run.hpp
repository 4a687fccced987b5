// How one piece of a payload goes through the phases of a pattern, at all the nodes that a process hosts.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "costmodel/plan/collective_steps.hpp"
#include "costmodel/plan/plan.hpp"
#include "trainer/comm/phase.hpp"
#include "trainer/comm/transport.hpp"
#include "trainer/comm/wire_codec.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// What one call of a collective sends of a payload: all of it, a bucket or a tensor
/// (costmodel/plan/pieces.hpp).
struct PieceOf {
  const costmodel::Exchange& exchange;
  const costmodel::Payload& payload;
  std::int64_t elements;
};

class PatternRun {
 public:
  PatternRun(const costmodel::Transfer& transfer, const PieceOf& piece, Transport& transport, bool exact)
      : steps_(transfer.pattern, transfer.collective, static_cast<int>(piece.exchange.nodes.size())),
        exchange_(&piece.exchange),
        traffic_(piece.payload.traffic),
        elements_(piece.elements),
        transport_(&transport),
        codec_(piece.payload.format, exact),
        values_(piece.exchange.nodes.size()) {}
  virtual ~PatternRun() = default;
  PatternRun(const PatternRun&) = delete;
  PatternRun& operator=(const PatternRun&) = delete;

  [[nodiscard]] std::int64_t elements() const { return elements_; }
  [[nodiscard]] virtual bool contributes(int /*position*/) const { return true; }
  [[nodiscard]] virtual bool gets_result(int /*position*/) const { return true; }
  /// Of what a contributor gives: all, or the chunk that it starts from.
  [[nodiscard]] virtual std::int64_t given(int /*position*/) const { return elements(); }
  /// What a hosted contributor sends: flat [given]; it is not written to.
  void give(int position, at::Tensor values) { value(position) = std::move(values); }
  /// A node's contribution as others read it off the wire.
  [[nodiscard]] virtual at::Tensor as_read(const at::Tensor& flat) const { return codec_.round_trip(flat); }

  [[nodiscard]] int phases() const { return steps_.count(); }
  /// Lays out what phase `step` sends; values need not be there yet.
  virtual void add_to(Phase& phase, int step) = 0;
  /// Around the phase, when its values are there.
  virtual void before(int /*step*/) {}
  virtual void after(int /*step*/) {}
  /// Of a hosted node that gets one: flat [elements], or the chunk that it ends with.
  [[nodiscard]] virtual at::Tensor result(int position) { return value(position); }

 protected:
  [[nodiscard]] const costmodel::CollectiveSteps& steps() const { return steps_; }
  [[nodiscard]] int size() const { return static_cast<int>(exchange_->nodes.size()); }
  [[nodiscard]] costmodel::NodeId node(int p) const { return exchange_->nodes[static_cast<std::size_t>(p)]; }
  [[nodiscard]] bool hosted(int p) const { return transport_->hosts(node(p)); }
  [[nodiscard]] at::Tensor& value(int p) { return values_[static_cast<std::size_t>(p)]; }
  [[nodiscard]] const WireCodec& codec() const { return codec_; }

  [[nodiscard]] std::int64_t chunk_size(int c) const {
    return costmodel::chunk_elements(elements(), size(), c);
  }
  [[nodiscard]] at::Tensor chunk(const at::Tensor& flat, int c) const {
    // The first (elements mod n) chunks have one element more.
    const std::int64_t begin = elements() / size() * c + std::min<std::int64_t>(c, elements() % size());
    return flat.narrow(0, begin, chunk_size(c));
  }

  /// Where each chunk is encoded by itself.
  [[nodiscard]] at::Tensor chunks_as_read(const at::Tensor& flat) const {
    std::vector<at::Tensor> parts;
    for (int c = 0; c < size(); ++c) parts.push_back(codec_.round_trip(chunk(flat, c)));
    return at::cat(parts);
  }

  void send(Phase& phase, int from, int to, std::int64_t count, std::function<at::Tensor()> encoded,
            std::function<void(const at::Tensor&)> received) const {
    phase.add(node(from), node(to), traffic_, codec_.bytes(count), std::move(encoded), std::move(received));
  }

 private:
  costmodel::CollectiveSteps steps_;
  const costmodel::Exchange* exchange_;
  costmodel::TrafficClass traffic_;
  std::int64_t elements_;
  Transport* transport_;
  WireCodec codec_;
  std::vector<at::Tensor> values_;  // by position; of hosted contributors
};

/// Throws std::invalid_argument for a pattern or wire format that is not done. `like`: for dtype and device
/// of what nodes read that send nothing.
std::unique_ptr<PatternRun> make_lane(const costmodel::Transfer& transfer, const PieceOf& piece,
                                      Transport& transport, bool exact, const at::Tensor& like);

}  // namespace fomoe::trainer
