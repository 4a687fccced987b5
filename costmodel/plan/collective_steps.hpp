// The messages of each step of a communication pattern. The simulator turns them into flows, the trainer into
// messages.
//
// S is the data of an exchange, and p is the position of one of the n nodes of the exchange. S is cut into n
// chunks. Indices of chunks and positions are mod n. A node starts a step when all its sends and receives of
// the previous steps have ended.
//   ring (Patarasuk and Yuan 2009), position p
//     all-reduce           step s = 0 … n−2      sends chunk p − s to p + 1, receives chunk p − 1 − s
//                          step s = n−1 … 2n−3   sends chunk p + 1 − (s − n + 1)
//     reduce-scatter       step s = 0 … n−2      sends chunk p − 1 − s; p ends with the sum of chunk p
//     all-gather           step s = 0 … n−2      sends chunk p − s, starting with its own chunk p
//     all-to-all broadcast step s = 0 … n−2      sends the S of position p − s
//   recursive halving and doubling (Thakur et al. 2005) among n = 2ᵏ nodes
//     all-reduce           step s < k            sends to q = p xor n/2ˢ⁺¹ the chunks of q's half
//                          then, backwards       sends all chunks of which p has the sum
//     reduce-scatter       the first k of these steps
//     all-gather           the last k of these steps
//   direct
//     all-reduce           step 0                sends chunk j of its copy to position j
//                          step 1                sends its reduced chunk to all
//     other patterns       one step: step 0 or step 1 of the all-reduce
//   chain, as NCCL's reduce and broadcast: node after node, and the chunks follow each other
//     reduce               step s = 0 … 2n−3     p > 0 sends chunk s − (n−1−p) to p − 1, if there is one
//     broadcast            step s = 0 … 2n−3     p < n−1 sends chunk s − p to p + 1, if there is one
//   store, at position 0 of n ≥ 3: nothing is cut
//     all-reduce           step 0                p > 0 sends its S to the store
//                          step 1                the store sends the result to all
//     all-to-all broadcast step 0                p > 0 sends its S to the store
//                          step 1                the store sends each S to all but its origin, when it has it
//     broadcast            step 0                position 1 sends S to the store
//                          step 1                the store sends it to p > 1
#pragma once
#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// Position `from` sends the chunks [first, first + count) to position `to`. With `whole` it sends all of S,
/// uncut; in an all-to-all broadcast that is the S of position `first`. With `result` it sends what a store
/// has made of all S.
struct Sending {
  int from = 0, to = 0;
  bool whole = false;
  int first = 0, count = 0;
  bool result = false;
};

class CollectiveSteps {
 public:
  /// Throws std::invalid_argument if recursive halving has a number of nodes that is no power of two.
  CollectiveSteps(Pattern pattern, Collective collective, int nodes)
      : pattern_(pattern),
        n_(nodes),
        ring_(in_ring(pattern, collective)),
        chain_(in_chain(pattern, collective)),
        store_(through_store({pattern, collective, {}})) {
    halves_ = collective == Collective::recursive && has_chunks();
    while (halves_ && 1 << log_ < n_) ++log_;
    if (halves_ && 1 << log_ != n_)
      throw std::invalid_argument("recursive halving requires a number of nodes that is a power of two");
  }

  /// Whether each node sends only to the next node in the ring.
  [[nodiscard]] static bool in_ring(Pattern pattern, Collective collective) {
    return collective == Collective::ring &&
           (pattern == Pattern::all_reduce || pattern == Pattern::reduce_scatter ||
            pattern == Pattern::all_gather || pattern == Pattern::all_to_all_broadcast);
  }
  [[nodiscard]] bool ring() const { return ring_; }
  /// Whether each node sends only to its neighbour in a chain that ends or begins at position 0.
  [[nodiscard]] static bool in_chain(Pattern pattern, Collective collective) {
    return collective == Collective::chain && (pattern == Pattern::reduce || pattern == Pattern::broadcast);
  }

  [[nodiscard]] int count() const {
    if (store_) return n_ < 3 ? 0 : 2;
    if (n_ < 2) return 0;
    if (chain_) return 2 * (n_ - 1);
    const int parts = pattern_ == Pattern::all_reduce ? 2 : 1;
    return parts * (ring_ ? n_ - 1 : halves_ ? log_ : 1);
  }
  /// Number of leading steps in which the receiver adds what arrives to its own data. In the later steps it
  /// stores what arrives.
  [[nodiscard]] int reducing() const {
    if (pattern_ == Pattern::all_reduce) return count() / 2;
    return pattern_ == Pattern::reduce_scatter || pattern_ == Pattern::reduce ? count() : 0;
  }
  /// The chunk whose complete sum position p holds after the reducing steps.
  [[nodiscard]] int reduced_chunk(int p) const {
    return ring_ && pattern_ == Pattern::all_reduce ? (p + 1) % n_ : p;
  }

  /// Calls `send(Sending)` for every message of step s, 0 ≤ s < count().
  template <class Send>
  void each(int s, const Send& send) const {
    if (store_) return send_through_store(s == 0, send);
    if (chain_) return send_along_chain(s, send);
    if (halves_) {
      const bool halving = s < reducing();
      return send_halves(halving ? n_ >> (s + 1) : 1 << (s % log_), halving, send);
    }
    switch (pattern_) {
      case Pattern::all_reduce:
        if (ring_) return send_round(s < n_ - 1 ? -s : 1 - (s - n_ + 1), false, send);
        return send_to_all(s == 0, false, send);
      case Pattern::reduce_scatter:
        return ring_ ? send_round(-1 - s, false, send) : send_to_all(true, false, send);
      case Pattern::all_gather:
        return ring_ ? send_round(-s, false, send) : send_to_all(false, false, send);
      case Pattern::all_to_all:
        return send_to_all(true, false, send);
      case Pattern::all_to_all_broadcast:
        return ring_ ? send_round(-s, true, send) : send_to_all(false, true, send);
      case Pattern::reduce:
        for (int p = 1; p < n_; ++p) send(Sending{p, 0, true, p, 0});
        return;
      case Pattern::broadcast:
      case Pattern::point_to_point:
        for (int p = 1; p < n_; ++p) send(Sending{0, p, true, 0, 0});
        return;
    }
    std::abort();
  }

 private:
  [[nodiscard]] bool has_chunks() const {
    return pattern_ == Pattern::all_reduce || pattern_ == Pattern::reduce_scatter ||
           pattern_ == Pattern::all_gather;
  }
  // Position p sends chunk p + shift, or the whole S of that position, to position p + 1.
  template <class Send>
  void send_round(int shift, bool whole, const Send& send) const {
    for (int p = 0; p < n_; ++p)
      send(Sending{p, (p + 1) % n_, whole, ((p + shift) % n_ + n_) % n_, whole ? 0 : 1});
  }
  // Every position sends to every other one the receiver's chunk or its own chunk.
  template <class Send>
  void send_to_all(bool of_receiver, bool whole, const Send& send) const {
    for (int p = 0; p < n_; ++p) {
      for (int q = 0; q < n_; ++q) {
        if (p != q) send(Sending{p, q, whole, of_receiver ? q : p, whole ? 0 : 1});
      }
    }
  }
  // The node at distance d from the beginning of the chain passes on chunk s − d.
  template <class Send>
  void send_along_chain(int s, const Send& send) const {
    const bool inwards = pattern_ == Pattern::reduce;
    for (int d = std::max(0, s - n_ + 1); d <= std::min(s, n_ - 2); ++d) {
      const int p = inwards ? n_ - 1 - d : d;
      send(Sending{p, inwards ? p - 1 : p + 1, false, s - d, 1});
    }
  }
  template <class Send>
  void send_through_store(bool up, const Send& send) const {
    for (int p = 1; p < n_; ++p) {
      if (up && (p == 1 || pattern_ != Pattern::broadcast)) send(Sending{p, 0, true, p, 0});
      if (!up && pattern_ == Pattern::all_reduce) send(Sending{0, p, false, 0, 0, true});
      if (!up && pattern_ == Pattern::broadcast && p > 1) send(Sending{0, p, true, 1, 0});
      for (int q = 1; !up && pattern_ == Pattern::all_to_all_broadcast && q < n_; ++q) {
        if (p != q) send(Sending{0, p, true, q, 0});
      }
    }
  }
  // Position p exchanges with q = p xor distance. When halving it sends the chunks of q's half, when doubling
  // those of its own half.
  template <class Send>
  void send_halves(int distance, bool halving, const Send& send) const {
    for (int p = 0; p < n_; ++p) {
      const int q = p ^ distance;
      send(Sending{p, q, false, (halving ? q : p) / distance * distance, distance});
    }
  }

  Pattern pattern_;
  int n_, log_ = 0;
  bool ring_, chain_, store_, halves_ = false;
};

}  // namespace fomoe::costmodel
