// How fast senders of TCP's BBR believe that they can send, and how slowly they take over what others leave.
#pragma once
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "costmodel/plan/plan.hpp"

namespace fomoe::sim {

/// One direction of a connection for each ordered pair of nodes. A sender paces its bytes by the most that
/// came through within its last costmodel::kBbrMemory_round_trips of sending, silences not counted, and tries
/// costmodel::kBbrRaise times as much once in kBbrCycle_round_trips (Cardwell et al. 2016, ProbeBW), or once
/// begun again and again where acknowledgements are not late. One that links hold back keeps trying, and has
/// the raise at once when they no longer do. Those that share an uplink get shares in proportion to what they
/// try, equal ones where that is little.
///
/// What came through is counted between two acknowledgements, a round trip apart at least (Cheng et al. 2017,
/// draft-cheng-iccrg-delivery-rate-estimation), and until the first of them since it began a sender takes
/// itself for the cause of a low rate. So bursts shorter than a round trip, as of a ring, teach little: they
/// never lower its estimate, and raise it only where they come in close order.
class SenderRates {
 public:
  using Pair = std::pair<costmodel::NodeId, costmodel::NodeId>;
  struct Environment {
    std::function<double()> now;
    std::function<void(double delay_s, std::function<void()>)> after;
    std::function<double(Pair)> round_trip_s;
    std::function<double(int)> uplink_bytes_per_s;        // of a site
    std::function<double(Pair)> draw;                     // between -1 and 1, for each pair another
    std::function<double(Pair)> delivered_bytes;          // since some time: differences count
    std::function<std::pair<int, int>(Pair)> ports;       // sites of sender and receiver
    std::function<void(Pair, double bytes_per_s)> limit;  // the pair's bytes flow no faster
  };
  explicit SenderRates(Environment surroundings) : around_(std::move(surroundings)) {}

  void flow_began(Pair pair);
  /// Its bytes are in delivered_bytes.
  void flow_ended(Pair pair);
  /// The pair's bytes stop for a while, or flow again: says nothing of what the path carries.
  void paused(Pair pair, bool is);
  /// `change` changes rates of links.
  void while_links_change(const std::function<void()>& change);
  /// As new. Only where nothing is left to happen.
  void restart();

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity(), kUnlimited = kNever;
  struct Sample {
    double until_active_s = 0;
    double bytes_per_s = 0;
  };
  /// Between two samples, while it sent.
  struct Span {
    double began_s = 0, began_bytes = 0;  // delivered until then
    double ended_s = 0, ended_bytes = 0;
  };
  struct Sender {
    int in_flight = 0;  // flows
    bool paused = false;
    std::deque<Span> sent;                  // of the last two round trips
    double silent_since_s = -kNever;        // when the last flow ended, or paused
    double spell_began_s = 0;               // since when it has sent without a pause
    double filled_s = 0;                    // in spells that had been acknowledged, up to the last sample
    double active_s = 0;                    // that anything was not yet acknowledged
    double sampled_s = 0;                   // by the clock
    double sampled_bytes = 0;               // delivered until then
    std::deque<Sample> most_first;          // falling rates, of later and later samples
    double paces_bytes_per_s = kUnlimited;  // no more than that
    double limit_bytes_per_s = kUnlimited;  // what that comes to among the others of its uplink
    bool held_back = false;                 // by links, at the last sample
    double next_raise_s = 0;
    double look_s = kNever;  // when it is sampled again, whatever others do
  };
  void begin_sample(Pair pair, Sender& sender) const;
  void begin_spell(Pair pair, Sender& sender) const;
  [[nodiscard]] double seen_bytes_per_s(const Sender& sender, double round_trip_s) const;
  void sample(Pair pair);
  void sample_all(const std::set<Pair>& pairs);
  void sample_those_beside(Pair pair);
  void share_uplink(int site);
  void limit(Pair pair, double bytes_per_s);
  [[nodiscard]] double round_trip_s(Pair pair) const;
  void look_later(Pair pair, int cycles = 1);
  void look(Pair pair, int cycles);
  [[nodiscard]] double paced_bytes_per_s(int site) const;
  [[nodiscard]] bool acknowledged_late(Pair pair) const;

  Environment around_;
  std::map<Pair, Sender> senders_;
  std::map<int, std::set<Pair>> sending_, receiving_;  // by site
};

}  // namespace fomoe::sim
