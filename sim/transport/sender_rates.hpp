// Models the bandwidth estimates of TCP's BBR senders, and how slowly a sender takes over capacity that other
// senders leave.
#pragma once
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "costmodel/plan/plan.hpp"

namespace fomoe::sim {

/// Each ordered pair of nodes is one direction of a connection. A sender's bandwidth estimate is the maximum
/// delivery rate of the sender's last costmodel::kBbrMemory_round_trips of sending; silences do not count.
/// Once in kBbrCycle_round_trips, a sender raises its pacing rate to costmodel::kBbrRaise times the estimate
/// (Cardwell et al. 2016, ProbeBW). If acknowledgements are not late, the sender raises the rate again in
/// every round trip. A sender whose rate the links limit keeps the raised rate, and uses it at once when the
/// links no longer limit it. Senders that share an uplink get shares in proportion to their pacing rates, or
/// equal shares if the rates are small.
///
/// The delivery rate is measured between two acknowledgements that are at least a round trip apart (Cheng et
/// al. 2017, draft-cheng-iccrg-delivery-rate-estimation). Until the first acknowledgement after a silence, a
/// sender does not count a low rate as the rate of the path, because the sender itself had too few bytes to
/// send (application-limited). Bursts shorter than a round trip, as in a ring, thus never lower the estimate.
/// Such bursts raise the estimate only if they follow each other closely.
class SenderRates {
 public:
  using Pair = std::pair<costmodel::NodeId, costmodel::NodeId>;
  struct Environment {
    std::function<double()> now;
    std::function<void(double delay_s, std::function<void()>)> after;
    std::function<double(Pair)> round_trip_s;
    std::function<double(int)> uplink_bytes_per_s;   // rate of a site's uplink
    std::function<double(Pair)> draw;                // pseudorandom, between -1 and 1, fixed for each pair
    std::function<double(Pair)> delivered_bytes;     // cumulative; only differences are used
    std::function<std::pair<int, int>(Pair)> ports;  // sites of sender and receiver
    std::function<void(Pair, double bytes_per_s)> limit;  // limits the rate of the pair's bytes
  };
  explicit SenderRates(Environment environment) : environment_(std::move(environment)) {}

  void flow_began(Pair pair);
  /// The bytes of the flow must already be part of Environment::delivered_bytes.
  void flow_ended(Pair pair);
  /// Records that a probe stops the pair's bytes, or that they flow again. A pause is no sample of the path's
  /// capacity.
  void paused(Pair pair, bool is);
  /// Samples all senders, calls `change`, which changes rates of links, and shares the uplinks anew.
  void while_links_change(const std::function<void()>& change);
  /// Resets the state to that of a new object. May be called only when no event is pending.
  void restart();

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity(), kUnlimited = kNever;
  struct Sample {
    double until_active_s = 0;  // Sender::active_s at the end of the sample
    double bytes_per_s = 0;
  };
  /// The interval between two samples during which a sender sent; the bytes are cumulative.
  struct Span {
    double began_s = 0, began_bytes = 0;
    double ended_s = 0, ended_bytes = 0;
  };
  struct Sender {
    int in_flight = 0;  // number of flows
    bool paused = false;
    std::deque<Span> sent;                   // spans of the last two round trips
    double silent_since_s = -kNever;         // time when the last flow ended or paused
    double spell_began_s = 0;                // time since which it has sent without a pause
    double filled_s = 0;                     // seconds of acknowledged sending, up to the last sample
    double active_s = 0;                     // seconds during which some bytes were not yet acknowledged
    double sampled_s = 0;                    // time of the last sample
    double sampled_bytes = 0;                // bytes delivered until the last sample
    std::deque<Sample> maximum_window;       // window of the maximum filter: falling rates, in order of time
    double pacing_bytes_per_s = kUnlimited;  // pacing rate
    double limit_bytes_per_s = kUnlimited;   // pacing rate after the uplink is shared with other senders
    bool held_back = false;                  // whether links limited its rate at the last sample
    double next_raise_s = 0;                 // time of the next raise of the pacing rate
    double next_sample_s = kNever;           // time of its next scheduled sample
  };
  void begin_sample(Pair pair, Sender& sender) const;
  void begin_spell(Pair pair, Sender& sender) const;
  [[nodiscard]] double seen_bytes_per_s(const Sender& sender, double round_trip_s) const;
  void sample(Pair pair);
  void sample_all(const std::set<Pair>& pairs);
  void sample_neighbours(Pair pair);
  void share_uplink(int site);
  void limit(Pair pair, double bytes_per_s);
  [[nodiscard]] double round_trip_s(Pair pair) const;
  void schedule_sample(Pair pair, int cycles = 1);
  void take_scheduled_sample(Pair pair, int cycles);
  [[nodiscard]] double paced_bytes_per_s(int site) const;
  [[nodiscard]] bool acknowledged_late(Pair pair) const;

  Environment environment_;
  std::map<Pair, Sender> senders_;
  std::map<int, std::set<Pair>> sending_, receiving_;  // [site]: pairs with flows in flight
};

}  // namespace fomoe::sim
