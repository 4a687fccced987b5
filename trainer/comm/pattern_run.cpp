#include "trainer/comm/pattern_run.hpp"

#include <stdexcept>
#include <utility>

#include "trainer/comm/through_store.hpp"

namespace fomoe::trainer {

using costmodel::Collective;
using costmodel::Pattern;
using costmodel::Sending;
using costmodel::Transfer;

namespace {

/// What the encodings of a reduction take, by position: each chunk by itself.
class ChunkLosses : public PatternRun {
 public:
  using PatternRun::PatternRun;
  /// Zeros if the node encoded nothing, as with fewer elements than nodes.
  [[nodiscard]] at::Tensor lost(int p) override {
    const at::Tensor& kept = losses_[static_cast<std::size_t>(p)];
    return kept.defined() ? kept : at::zeros({elements()}, value(p).options());
  }

 protected:
  /// Bytes of `values`, which is chunk `c` at position `p`. `share` of it is this node's, so that it keeps
  /// the 1/share of what is lost: 1 of a sum, and 1/n of the mean of n.
  at::Tensor encode_keeping_loss(int p, int c, const at::Tensor& values, double share = 1) {
    at::Tensor bytes = codec().encode(values);
    if (tracks_losses()) add_loss(p, c, values - codec().decode(bytes, values.numel(), values), share);
    return bytes;
  }
  void add_loss(int p, int c, const at::Tensor& loss, double share) {
    at::Tensor& kept = losses_[static_cast<std::size_t>(p)];
    if (!kept.defined()) kept = at::zeros({elements()}, loss.options());
    chunk(kept, c).add_(loss, 1 / share);
  }

 private:
  std::vector<at::Tensor> losses_ = std::vector<at::Tensor>(static_cast<std::size_t>(size()));
};

/// Direct all-reduce: position q receives chunk q from every node, adds the chunks in the order of positions,
/// and sends their mean back to every node.
class DirectAllReduce : public ChunkLosses {
 public:
  DirectAllReduce(const Transfer& transfer, const PieceOf& piece, Transport& transport, bool exact)
      : ChunkLosses(transfer, piece, transport, exact),
        received_(static_cast<std::size_t>(size()),
                  std::vector<at::Tensor>(static_cast<std::size_t>(size()))),
        encoded_mean_(static_cast<std::size_t>(size())) {}

  void add_to(Phase& phase, int step) override {
    steps().each(step, [&](const Sending& sent) {
      const int p = sent.from, q = sent.to, c = sent.first;
      if (step < steps().reducing()) {
        send(
            phase, p, q, chunk_size(c),
            [this, p, c] { return encode_keeping_loss(p, c, chunk(value(p), c)); },
            [this, p, q](const at::Tensor& bytes) { heard(q, p) = decoded(bytes, q, q); });
      } else {
        send(
            phase, p, q, chunk_size(c), [this, p] { return encoded_mean_[static_cast<std::size_t>(p)]; },
            [this, q, c](const at::Tensor& bytes) { chunk(value(q), c).copy_(decoded(bytes, q, c)); });
      }
    });
  }

  void after(int step) override {
    if (step != 0) return;
    for (int q = 0; q < size(); ++q) {
      if (!hosted(q)) continue;
      const at::Tensor own = chunk(value(q), q);
      heard(q, q) = codec().round_trip(own);
      if (tracks_losses()) add_loss(q, q, own - heard(q, q), 1);
      at::Tensor sum = heard(q, 0).clone();
      for (int p = 1; p < size(); ++p) sum += heard(q, p);
      sum /= size();
      encoded_mean_[static_cast<std::size_t>(q)] = encode_keeping_loss(q, q, sum, 1.0 / size());
      // Clone, since a source may hand out its own tensor.
      value(q) = value(q).clone();
      chunk(value(q), q).copy_(decoded(encoded_mean_[static_cast<std::size_t>(q)], q, q));
    }
  }

 private:
  at::Tensor& heard(int at, int from) {
    return received_[static_cast<std::size_t>(at)][static_cast<std::size_t>(from)];
  }
  [[nodiscard]] at::Tensor decoded(const at::Tensor& bytes, int at, int c) {
    return codec().decode(bytes, chunk_size(c), value(at));
  }

  std::vector<std::vector<at::Tensor>> received_;  // [receiver][sender]: the receiver's chunk
  std::vector<at::Tensor> encoded_mean_;           // by position: the mean of its chunk
};

/// All-reduce, reduce-scatter or all-gather around a ring or by halving and doubling: first partial sums of
/// chunks travel, then the means of the chunks. The order of the sums differs between chunks. The result
/// still has the same bits at every node, since one node computes each chunk's mean and its bytes are passed
/// on unchanged.
class RingReduce : public ChunkLosses {
 public:
  RingReduce(const Transfer& transfer, const PieceOf& piece, Transport& transport, bool exact)
      : ChunkLosses(transfer, piece, transport, exact),
        pattern_(transfer.pattern),
        encoded_(static_cast<std::size_t>(size()),
                 std::vector<at::Tensor>(static_cast<std::size_t>(size()))) {}

  [[nodiscard]] std::int64_t given(int p) const override {
    return pattern_ == Pattern::all_gather ? chunk_size(p) : elements();
  }

  // Clone what was given, since a source may hand out its own tensors.
  void before(int step) override {
    if (step > 0) return;
    for (int p = 0; p < size(); ++p) {
      if (!hosted(p)) continue;
      if (pattern_ != Pattern::all_gather) {
        value(p) = value(p).clone();
        continue;
      }
      const at::Tensor own = value(p);
      value(p) = at::empty({elements()}, own.options());
      chunk(value(p), p).copy_(own);
      encode(p, p, 1);
    }
  }

  void add_to(Phase& phase, int step) override {
    const bool reducing = step < steps().reducing(), last = step + 1 == phases();
    steps().each(step, [&](const Sending& sent) {
      const int p = sent.from, q = sent.to;
      for (int c = sent.first; c < sent.first + sent.count; ++c) {
        send(
            phase, p, q, chunk_size(c),
            [this, p, c, reducing] {
              return reducing ? encode_keeping_loss(p, c, chunk(value(p), c)) : passed_on(p, c);
            },
            [this, q, c, reducing, last](const at::Tensor& bytes) {
              at::Tensor mine = chunk(value(q), c);
              const at::Tensor heard = codec().decode(bytes, chunk_size(c), mine);
              if (reducing) {
                mine += heard;
              } else {
                mine.copy_(heard);
                if (!last) encoded(q, c) = bytes;
              }
            });
      }
    });
  }

  void after(int step) override {
    if (step + 1 != steps().reducing()) return;
    for (int p = 0; p < size(); ++p) {
      if (!hosted(p)) continue;
      const int c = steps().reduced_chunk(p);
      chunk(value(p), c) /= size();
      if (pattern_ == Pattern::all_reduce) encode(p, c, 1.0 / size());
    }
  }

  [[nodiscard]] at::Tensor result(int p) override {
    return pattern_ == Pattern::reduce_scatter ? chunk(value(p), p) : value(p);
  }

 private:
  // From here on this node, too, continues with the values that the others decode.
  void encode(int p, int c, double share) {
    at::Tensor mine = chunk(value(p), c);
    encoded(p, c) = encode_keeping_loss(p, c, mine, share).clone();
    mine.copy_(codec().decode(encoded(p, c), mine.numel(), mine));
  }
  // Around a ring each node sends each chunk only once, so the encoded chunk can be released.
  at::Tensor passed_on(int p, int c) {
    return steps().ring() ? std::exchange(encoded(p, c), at::Tensor()) : encoded(p, c);
  }
  at::Tensor& encoded(int p, int c) {
    return encoded_[static_cast<std::size_t>(p)][static_cast<std::size_t>(c)];
  }

  Pattern pattern_;
  std::vector<std::vector<at::Tensor>> encoded_;  // [position][chunk]: encoded means to pass on
};

/// All-to-all broadcast: every node sends its payload to every node, and all take the same mean. Around a
/// ring each node passes on what it received.
class AllGather : public PatternRun {
 public:
  AllGather(const Transfer& transfer, const PieceOf& piece, Transport& transport, bool exact)
      : PatternRun(transfer, piece, transport, exact),
        received_(static_cast<std::size_t>(size()),
                  std::vector<at::Tensor>(static_cast<std::size_t>(size()))) {}

  void before(int step) override {
    for (int p = 0; step == 0 && p < size(); ++p) {
      if (hosted(p)) heard(p, p) = codec().encode(value(p));
    }
  }

  void add_to(Phase& phase, int step) override {
    steps().each(step, [&](const Sending& sent) {
      const int p = sent.from, q = sent.to, origin = sent.first;
      send(
          phase, p, q, elements(), [this, p, origin] { return heard(p, origin); },
          [this, q, origin](const at::Tensor& bytes) { heard(q, origin) = bytes; });
    });
  }

  [[nodiscard]] at::Tensor result(int position) override {
    if (size() < 2) return value(position);
    at::Tensor sum = codec().decode(heard(position, 0), elements(), value(position)).clone();
    for (int p = 1; p < size(); ++p) sum += codec().decode(heard(position, p), elements(), value(position));
    return sum / size();
  }

 private:
  at::Tensor& heard(int at, int from) {
    return received_[static_cast<std::size_t>(at)][static_cast<std::size_t>(from)];
  }
  std::vector<std::vector<at::Tensor>> received_;  // [receiver][sender], encoded
};

/// Reduce (all other nodes send to the first, which takes the mean over the senders) and broadcast (the first
/// sends to all others).
class Rooted : public PatternRun {
 public:
  Rooted(const Transfer& transfer, const PieceOf& piece, Transport& transport, bool exact,
         const at::Tensor& like)
      : PatternRun(transfer, piece, transport, exact),
        to_first_(transfer.pattern == Pattern::reduce),
        like_(like),
        received_(static_cast<std::size_t>(size())) {}

  void add_to(Phase& phase, int step) override {
    steps().each(step, [&](const Sending& sent) {
      const int other = to_first_ ? sent.from : sent.to;
      send(
          phase, sent.from, sent.to, elements(),
          [this, from = sent.from] { return codec().encode(value(from)); },
          [this, other](const at::Tensor& bytes) {
            received_[static_cast<std::size_t>(other)] = codec().decode(bytes, elements(), like_);
          });
    });
  }

  [[nodiscard]] bool contributes(int p) const override { return to_first_ == (p > 0); }
  [[nodiscard]] bool gets_result(int p) const override { return to_first_ == (p == 0) && size() > 1; }
  [[nodiscard]] at::Tensor result(int p) override {
    if (!to_first_) return received_[static_cast<std::size_t>(p)];
    at::Tensor sum = received_[1].clone();
    for (int q = 2; q < size(); ++q) sum += received_[static_cast<std::size_t>(q)];
    return sum / (size() - 1);
  }

 private:
  bool to_first_;
  at::Tensor like_;
  std::vector<at::Tensor> received_;  // by position of the node that is not the first
};

}  // namespace

std::unique_ptr<PatternRun> make_pattern_run(const Transfer& transfer, const PieceOf& piece,
                                             Transport& transport, bool exact, const at::Tensor& like) {
  if (costmodel::through_store(transfer))
    return std::make_unique<ThroughStore>(transfer, piece, transport, exact, like);
  const bool ordered = transfer.collective == Collective::direct;
  const bool sparse = piece.payload.format.sparse();
  switch (transfer.pattern) {
    case Pattern::all_reduce:
      if (sparse) break;  // a sum of sparse vectors is no longer as sparse
      if (ordered) return std::make_unique<DirectAllReduce>(transfer, piece, transport, exact);
      return std::make_unique<RingReduce>(transfer, piece, transport, exact);
    case Pattern::reduce_scatter:
    case Pattern::all_gather:
      if (sparse || ordered) break;
      return std::make_unique<RingReduce>(transfer, piece, transport, exact);
    case Pattern::all_to_all_broadcast:
      return std::make_unique<AllGather>(transfer, piece, transport, exact);
    case Pattern::reduce:
    case Pattern::broadcast:
    case Pattern::point_to_point:
      return std::make_unique<Rooted>(transfer, piece, transport, exact, like);
    default:
      break;
  }
  throw std::invalid_argument(
      "the trainer does not implement this communication pattern; it implements all-reduce, reduce-scatter "
      "and all-gather (ring or recursive halving and doubling), all-to-all broadcast, reduce, broadcast and "
      "point-to-point; through a store all-reduce, all-to-all broadcast and broadcast");
}

}  // namespace fomoe::trainer
