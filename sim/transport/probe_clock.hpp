// Models the ProbeRTT phase of TCP's BBR: when a sender almost stops sending, in order to measure the round
// trip of the empty path.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "costmodel/plan/plan.hpp"

namespace fomoe::sim {

/// Each ordered pair of nodes is one direction of a connection, which was set up kSetUp_round_trips before
/// time 0. A sender probes 10 s after its last estimate of the round trip: it stops for
/// costmodel::bbr_probe_s(). If it is sending, it stops at once. Otherwise it stops when the first bytes that
/// it sends next have been acknowledged. (In Linux, a sender that was silent skips the probe, unless it has
/// just received a short message that the receiver is ready.)
///
/// A sender renews its estimate without a probe when it measures a round trip as short as the shortest so
/// far. Each transfer that follows a silence lets the sender measure one more round trip on an empty path.
/// The n-th of these measurements renews the estimate with the probability
///   p = min(1, 1.5 ÷ n)
/// The factor 1.5 is assumed. It would be 1 if no two round trips were equal; with 1.5, the model has probes
/// in as many rounds as 54 measured runs had. The connection's set-up counts as the first measurement. The
/// count starts again after a probe, since the packets of a probe were large.
class ProbeClock {
 public:
  using Pair = std::pair<costmodel::NodeId, costmodel::NodeId>;
  struct Environment {
    std::function<double()> now;
    std::function<void(double delay_s, std::function<void()>)> after;
    std::function<double(Pair)> round_trip_s;
    std::function<double(Pair, std::uint64_t which)> draw;  // in [0, 1); differs for each pair and `which`
    std::function<void(Pair, bool open)> set_open;          // lets the pair's bytes flow, or stops them
  };
  /// Age of a connection at time 0, in round trips. Assumed: in the traces of 14 connections it was 9 round
  /// trips and 0.2 s.
  static constexpr double kSetUp_round_trips = 10;

  explicit ProbeClock(Environment environment) : environment_(std::move(environment)) {}

  void flow_began(Pair pair);
  void flow_ended(Pair pair);
  /// Resets the state to that of a new object. May be called only when no event is pending.
  void restart() { senders_.clear(); }

 private:
  struct Sender {
    double known_s = 0;   // time of the last estimate of the round trip
    int undisturbed = 1;  // undisturbed round trips since the set-up or the last probe
    std::uint64_t draws = 0;
    double ended_s = -std::numeric_limits<double>::infinity();  // time when the last flow ended
    int in_flight = 0;                                          // number of flows
    bool timed = false;                                         // whether a timer for the next probe runs
    bool probing = false;
  };
  /// True if the sender has no flow in flight, and all its bytes are acknowledged.
  [[nodiscard]] bool silent(const Sender& sender, Pair pair) const;
  void compare_round_trips(Pair pair, Sender& sender);
  [[nodiscard]] double due_in_s(const Sender& sender) const;
  void wait(Pair pair);
  void probe(Pair pair);

  Environment environment_;
  std::map<Pair, Sender> senders_;
};

}  // namespace fomoe::sim
