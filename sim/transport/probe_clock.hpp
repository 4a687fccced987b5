// When senders of TCP's BBR probe for the empty path's round trip, and send next to nothing meanwhile.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "costmodel/plan/plan.hpp"

namespace fomoe::sim {

/// One direction of a connection for each ordered pair of nodes, set up kSetUp_round_trips before time 0. 10
/// s after it last knew the round trip a sender stops for costmodel::bbr_probe_s(): at once where it sends,
/// else when the first bytes that it sends next have been acknowledged. (Linux lets senders off that were
/// silent, and does not mean those that have just been told, in a short message, that the receiver is ready.)
///
/// It knows the round trip when it sees one as short as the shortest so far: with every transfer that follows
/// a silence there is one more that nothing was in the way of, and which of n such is the shortest is chance:
///   p = min(1, 1.5 ÷ n)
/// Assumed: 1 if no two were equal; with 1.5 as many rounds of 54 runs have probes as had. The set-up is the
/// first of them, and after a probe they count anew, since its packets were large.
class ProbeClock {
 public:
  using Pair = std::pair<costmodel::NodeId, costmodel::NodeId>;
  struct Environment {
    std::function<double()> now;
    std::function<void(double delay_s, std::function<void()>)> after;
    std::function<double(Pair)> round_trip_s;
    std::function<double(Pair, std::uint64_t which)> draw;  // in [0, 1), each another
    std::function<void(Pair, bool open)> set_open;          // whether the pair's bytes flow
  };
  /// Assumed: of 14 connections whose traces were looked at it was 9 round trips and 0.2 s.
  static constexpr double kSetUp_round_trips = 10;

  explicit ProbeClock(Environment surroundings) : around_(std::move(surroundings)) {}

  void flow_began(Pair pair);
  void flow_ended(Pair pair);
  /// As new. Only where nothing is left to happen.
  void restart() { senders_.clear(); }

 private:
  struct Sender {
    double known_s = 0;   // when, the round trip
    int undisturbed = 1;  // round trips since it began to compare them
    std::uint64_t draws = 0;
    double ended_s = -std::numeric_limits<double>::infinity();  // the last flow
    int in_flight = 0;                                          // flows
    bool timed = false;                                         // the next probe
    bool probing = false;
  };
  /// Nothing of it is under way, and all is acknowledged.
  [[nodiscard]] bool silent(const Sender& sender, Pair pair) const;
  void compare_round_trips(Pair pair, Sender& sender);
  [[nodiscard]] double due_in_s(const Sender& sender) const;
  void wait(Pair pair);
  void probe(Pair pair);

  Environment around_;
  std::map<Pair, Sender> senders_;
};

}  // namespace fomoe::sim
