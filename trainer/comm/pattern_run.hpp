// Runs one piece of a payload through the phases of a pattern, for all nodes that a process hosts.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "costmodel/plan/collective_steps.hpp"
#include "costmodel/plan/plan.hpp"
#include "trainer/comm/phase.hpp"
#include "trainer/comm/transport.hpp"
#include "trainer/comm/wire_codec.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// The part of a payload that one call of a collective sends: the whole payload, a bucket or a tensor
/// (costmodel/plan/pieces.hpp).
struct PieceOf {
  const costmodel::Exchange& exchange;
  const costmodel::Payload& payload;
  std::int64_t elements;
  int object = 0;  // see StoredObject::number
};

class PatternRun {
 public:
  PatternRun(const costmodel::Transfer& transfer, const PieceOf& piece, Transport& transport, bool exact)
      : steps_(transfer.pattern, transfer.collective, static_cast<int>(piece.exchange.nodes.size())),
        exchange_(&piece.exchange),
        traffic_(piece.payload.traffic),
        elements_(piece.elements),
        object_(piece.object),
        transport_(&transport),
        codec_(piece.payload.format, exact),
        values_(piece.exchange.nodes.size()) {}
  virtual ~PatternRun() = default;
  PatternRun(const PatternRun&) = delete;
  PatternRun& operator=(const PatternRun&) = delete;

  [[nodiscard]] std::int64_t elements() const { return elements_; }
  [[nodiscard]] virtual bool contributes(int /*position*/) const { return true; }
  [[nodiscard]] virtual bool gets_result(int /*position*/) const { return true; }
  /// The number of elements that a contributor gives: all elements, or only those of the chunk that the
  /// contributor starts with.
  [[nodiscard]] virtual std::int64_t given(int /*position*/) const { return elements(); }
  /// Sets what a hosted contributor sends: a flat tensor [given], which is never written to.
  void give(int position, at::Tensor values) { value(position) = std::move(values); }
  /// From now on, lost() has a value. Called before give().
  void track_losses() { tracks_losses_ = true; }
  bool tracks_losses() const { return tracks_losses_; }
  /// What the encodings that this node makes take from the sum of all contributions: flat [elements]. If the
  /// node adds it to what it gives next, the sum of all results is that of all contributions.
  [[nodiscard]] virtual at::Tensor lost(int position) {
    return value(position) - codec_.round_trip(value(position));
  }

  [[nodiscard]] int phases() const { return steps_.count(); }
  /// Adds the segments of phase `step` to `phase`. The values to send need not be known yet.
  virtual void add_to(Phase& phase, int step) = 0;
  /// Called directly before and directly after phase `step`. Unlike add_to(), these functions may use the
  /// values.
  virtual void before(int /*step*/) {}
  virtual void after(int /*step*/) {}
  /// The result at a hosted node that gets one: flat [elements], or only the chunk that the node ends with.
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

  using Encoded = std::function<at::Tensor()>;
  using Received = std::function<void(const at::Tensor&)>;
  void send(Phase& phase, int from, int to, std::int64_t count, Encoded encoded, Received received) const {
    send_bytes(phase, from, to, from, codec_.bytes(count), std::move(encoded), std::move(received));
  }
  /// Sends bytes that the node at the position `origin` has made, and a store between them passes on.
  void send_bytes(Phase& phase, int from, int to, int origin, std::int64_t bytes, Encoded encoded,
                  Received received) const {
    std::optional<StoredObject> object;
    if (is_store(from) || is_store(to)) object = {object_, node(origin)};
    phase.add(node(from), node(to), object, traffic_, bytes, std::move(encoded), std::move(received));
  }

 private:
  [[nodiscard]] bool is_store(int p) const {
    return transport_->nodes()[static_cast<std::size_t>(node(p))].kind == costmodel::NodeKind::store;
  }

  costmodel::CollectiveSteps steps_;
  const costmodel::Exchange* exchange_;
  costmodel::TrafficClass traffic_;
  std::int64_t elements_;
  int object_;
  Transport* transport_;
  WireCodec codec_;
  std::vector<at::Tensor> values_;  // by position; only hosted contributors have one
  bool tracks_losses_ = false;
};

/// Throws std::invalid_argument for a pattern or wire format that the trainer does not support. A node that
/// sends nothing itself decodes to the dtype and the device of `like`.
std::unique_ptr<PatternRun> make_pattern_run(const costmodel::Transfer& transfer, const PieceOf& piece,
                                             Transport& transport, bool exact, const at::Tensor& like);

}  // namespace fomoe::trainer
