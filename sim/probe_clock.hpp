// When senders of TCP's BBR probe for the empty path's round trip, and send next to nothing meanwhile.
#pragma once
#include <functional>
#include <map>
#include <utility>

#include "costmodel/plan.hpp"

namespace fomoe::sim {

/// One direction of a connection for each ordered pair of nodes. A sender that has sent for 10 s since it
/// last knew the round trip stops for costmodel::bbr_probe_s(); one that is silent at that time learns it
/// from whatever it sends next. Silent: nothing of it has been under way for a round trip.
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
    double seen_s = -1;   // the round trip; never
    double ended_s = -1;  // the last flow
    int flying = 0;       // flows
    bool timed = false;   // the next probe
    bool probing = false;
  };
  [[nodiscard]] bool silent(const Sender& sender, Pair pair) const;
  void count_down(Pair pair);
  void come_due(Pair pair);

  Surroundings around_;
  std::map<Pair, Sender> senders_;
};

}  // namespace fomoe::sim
