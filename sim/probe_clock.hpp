// When senders of TCP's BBR probe for the empty path's round trip, and send next to nothing meanwhile.
#pragma once
#include <functional>
#include <map>
#include <utility>

#include "costmodel/plan.hpp"

namespace fomoe::sim {

/// One direction of a connection for each ordered pair of nodes; they were opened at time 0. 10 s after it
/// last knew the round trip a sender stops for costmodel::bbr_probe_s(): at once where it sends, else when
/// the first bytes that it sends next have been acknowledged. (Linux lets senders off that were silent, and
/// does not mean those that have just been told, in a short message, that the receiver is ready.)
class ProbeClock {
 public:
  using Pair = std::pair<costmodel::NodeId, costmodel::NodeId>;
  struct Surroundings {
    std::function<double()> now;
    std::function<void(double delay_s, std::function<void()>)> after;
    std::function<double(Pair)> round_trip_s;
    std::function<void(Pair, bool open)> set_open;  // whether the pair's bytes flow
  };
  explicit ProbeClock(Surroundings surroundings) : around_(std::move(surroundings)) {}

  void flow_began(Pair pair);
  void flow_ended(Pair pair);
  /// As new. Only where nothing is left to happen.
  void restart() { senders_.clear(); }

 private:
  struct Sender {
    double seen_s = 0;   // the round trip
    double ended_s = 0;  // the last flow
    int flying = 0;      // flows
    bool timed = false;  // the next probe
    bool probing = false;
  };
  /// Nothing of it is under way, and all is acknowledged.
  [[nodiscard]] bool silent(const Sender& sender, Pair pair) const;
  void wait(Pair pair);
  void probe(Pair pair);

  Surroundings around_;
  std::map<Pair, Sender> senders_;
};

}  // namespace fomoe::sim
