#include "trainer/pattern_lane.hpp"

#include <stdexcept>

namespace fomoe::trainer {

using costmodel::Collective;
using costmodel::Pattern;

namespace {

/// Position q gets chunk q of everybody, adds them in the order of positions, and sends the mean back out.
class DirectAllReduce : public PatternLane {
 public:
  DirectAllReduce(const PieceOf& piece, Transport& transport, bool exact)
      : PatternLane(piece, transport, exact),
        heard_(static_cast<std::size_t>(size()), std::vector<at::Tensor>(static_cast<std::size_t>(size()))),
        encoded_mean_(static_cast<std::size_t>(size())) {}

  [[nodiscard]] int phases() const override { return size() > 1 ? 2 : 0; }

  void add_to(Phase& phase, int step) override {
    for (int p = 0; p < size(); ++p) {
      for (int q = 0; q < size(); ++q) {
        if (p == q) continue;
        if (step == 0) {
          send(
              phase, p, q, chunk_size(q), [this, p, q] { return codec().encode(chunk(value(p), q)); },
              [this, p, q](const at::Tensor& bytes) { heard(q, p) = decoded(bytes, q, q); });
        } else {
          send(
              phase, p, q, chunk_size(p), [this, p] { return encoded_mean_[static_cast<std::size_t>(p)]; },
              [this, p, q](const at::Tensor& bytes) { chunk(value(q), p).copy_(decoded(bytes, q, p)); });
        }
      }
    }
  }

  void after(int step) override {
    if (step != 0) return;
    for (int q = 0; q < size(); ++q) {
      if (!hosted(q)) continue;
      heard(q, q) = codec().round_trip(chunk(value(q), q));
      at::Tensor sum = heard(q, 0).clone();
      for (int p = 1; p < size(); ++p) sum += heard(q, p);
      sum /= size();
      encoded_mean_[static_cast<std::size_t>(q)] = codec().encode(sum);
      // A copy, since sources may hand out their own tensors.
      value(q) = value(q).clone();
      chunk(value(q), q).copy_(decoded(encoded_mean_[static_cast<std::size_t>(q)], q, q));
    }
  }

  [[nodiscard]] at::Tensor as_read(const at::Tensor& flat) const override {
    std::vector<at::Tensor> parts;
    for (int c = 0; c < size(); ++c) parts.push_back(codec().round_trip(chunk(flat, c)));
    return at::cat(parts);
  }

 private:
  at::Tensor& heard(int at, int from) {
    return heard_[static_cast<std::size_t>(at)][static_cast<std::size_t>(from)];
  }
  [[nodiscard]] at::Tensor decoded(const at::Tensor& bytes, int at, int c) {
    return codec().decode(bytes, chunk_size(c), value(at));
  }

  std::vector<std::vector<at::Tensor>> heard_;  // [at][from]: chunk `at`
  std::vector<at::Tensor> encoded_mean_;        // by position: its chunk
};

/// Reduce-scatter and all-gather around the ring (Patarasuk and Yuan 2009). Sums are taken in another order
/// for each chunk; the result is still the same bits everywhere, since one node makes each chunk.
class RingAllReduce : public PatternLane {
 public:
  using PatternLane::PatternLane;
  [[nodiscard]] int phases() const override { return 2 * (size() - 1); }

  void add_to(Phase& phase, int step) override {
    const int n = size();
    const bool reducing = step < n - 1;
    for (int p = 0; p < n; ++p) {
      const int c = ((p + (reducing ? -step : 1 - (step - n + 1))) % n + n) % n, q = (p + 1) % n;
      send(
          phase, p, q, chunk_size(c),
          [this, p, c, reducing] {
            return reducing ? codec().encode(chunk(value(p), c)) : encoded_[static_cast<std::size_t>(p)];
          },
          [this, c, q, reducing](const at::Tensor& bytes) {
            at::Tensor mine = chunk(value(q), c);
            const at::Tensor heard = codec().decode(bytes, chunk_size(c), mine);
            if (reducing) {
              mine += heard;
            } else {
              mine.copy_(heard);
              next_[static_cast<std::size_t>(q)] = bytes;  // passed on as it came
            }
          });
    }
  }

  void before(int step) override {
    if (step > 0) return;
    encoded_.resize(static_cast<std::size_t>(size()));
    next_.resize(static_cast<std::size_t>(size()));
    for (int p = 0; p < size(); ++p) {
      if (hosted(p)) value(p) = value(p).clone();
    }
  }

  void after(int step) override {
    const int n = size();
    if (step == n - 2) {  // position p now has all of chunk p + 1
      for (int p = 0; p < n; ++p) {
        if (!hosted(p)) continue;
        at::Tensor mine = chunk(value(p), (p + 1) % n);
        mine /= n;
        next_[static_cast<std::size_t>(p)] = codec().encode(mine).clone();
        mine.copy_(codec().decode(next_[static_cast<std::size_t>(p)], mine.numel(), mine));
      }
    }
    if (step >= n - 2) encoded_ = next_;
  }

 private:
  std::vector<at::Tensor> encoded_, next_;  // by position: what it sends in this phase, and in the next
};

/// Everybody's payload to everybody, who all take the same mean. By ring each passes on what it got.
class EverybodyToAll : public PatternLane {
 public:
  EverybodyToAll(const PieceOf& piece, Transport& transport, bool exact, bool ring)
      : PatternLane(piece, transport, exact),
        ring_(ring),
        heard_(static_cast<std::size_t>(size()), std::vector<at::Tensor>(static_cast<std::size_t>(size()))) {}

  [[nodiscard]] int phases() const override { return size() < 2 ? 0 : ring_ ? size() - 1 : 1; }

  void before(int step) override {
    for (int p = 0; step == 0 && p < size(); ++p) {
      if (hosted(p)) heard(p, p) = codec().encode(value(p));
    }
  }

  void add_to(Phase& phase, int step) override {
    const int n = size();
    for (int p = 0; p < n; ++p) {
      for (int q = 0; q < n; ++q) {
        if (p == q || (ring_ && q != (p + 1) % n)) continue;
        const int origin = ring_ ? ((p - step) % n + n) % n : p;
        send(
            phase, p, q, elements(), [this, p, origin] { return heard(p, origin); },
            [this, q, origin](const at::Tensor& bytes) { heard(q, origin) = bytes; });
      }
    }
  }

  [[nodiscard]] at::Tensor result(int position) override {
    if (size() < 2) return value(position);
    at::Tensor sum = codec().decode(heard(position, 0), elements(), value(position)).clone();
    for (int p = 1; p < size(); ++p) sum += codec().decode(heard(position, p), elements(), value(position));
    return sum / size();
  }

 private:
  at::Tensor& heard(int at, int from) {
    return heard_[static_cast<std::size_t>(at)][static_cast<std::size_t>(from)];
  }
  bool ring_;
  std::vector<std::vector<at::Tensor>> heard_;  // [at][from], encoded
};

/// Everybody to the first (a mean over the senders), or the first to everybody.
class Rooted : public PatternLane {
 public:
  Rooted(const PieceOf& piece, Transport& transport, bool exact, bool to_first, const at::Tensor& like)
      : PatternLane(piece, transport, exact),
        to_first_(to_first),
        like_(like),
        heard_(static_cast<std::size_t>(size())) {}

  [[nodiscard]] int phases() const override { return size() > 1 ? 1 : 0; }
  void add_to(Phase& phase, int) override {
    for (int p = 1; p < size(); ++p) {
      const int from = to_first_ ? p : 0, to = to_first_ ? 0 : p;
      send(
          phase, from, to, elements(), [this, from] { return codec().encode(value(from)); },
          [this, p](const at::Tensor& bytes) {
            heard_[static_cast<std::size_t>(p)] = codec().decode(bytes, elements(), like_);
          });
    }
  }

  [[nodiscard]] bool contributes(int p) const override { return to_first_ == (p > 0); }
  [[nodiscard]] bool gets_result(int p) const override { return to_first_ == (p == 0) && size() > 1; }
  [[nodiscard]] at::Tensor result(int p) override {
    if (!to_first_) return heard_[static_cast<std::size_t>(p)];
    at::Tensor sum = heard_[1].clone();
    for (int q = 2; q < size(); ++q) sum += heard_[static_cast<std::size_t>(q)];
    return sum / (size() - 1);
  }

 private:
  bool to_first_;
  at::Tensor like_;
  std::vector<at::Tensor> heard_;  // by the position that is not the first
};

}  // namespace

std::unique_ptr<PatternLane> make_lane(const costmodel::Transfer& transfer, const PieceOf& piece,
                                       Transport& transport, bool exact, const at::Tensor& like) {
  const bool ring = transfer.collective == Collective::ring;
  switch (transfer.pattern) {
    case Pattern::all_reduce:
      if (piece.payload.format.sparse()) break;  // sums of kept values are no longer sparse
      if (ring) return std::make_unique<RingAllReduce>(piece, transport, exact);
      return std::make_unique<DirectAllReduce>(piece, transport, exact);
    case Pattern::all_to_all_broadcast:
      return std::make_unique<EverybodyToAll>(piece, transport, exact, ring);
    case Pattern::reduce:
    case Pattern::broadcast:
    case Pattern::point_to_point:
      return std::make_unique<Rooted>(piece, transport, exact, transfer.pattern == Pattern::reduce, like);
    default:
      break;
  }
  throw std::invalid_argument(
      "the trainer does not do this pattern: it knows all-reduce, everybody to all, reduce, broadcast and "
      "point to point");
}

}  // namespace fomoe::trainer
