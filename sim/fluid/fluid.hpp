// Links, flows and timers on top of SimGrid: a simulated clock, and flows of bytes from node to node that
// share the links of their routes fairly. Only this folder and sim/xml include SimGrid.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "platforms/link_changes.hpp"

namespace fomoe::sim {

struct Flight;  // a flow in progress; defined in fluid_simgrid.hpp

/// A process may have one Fluid only, because SimGrid's clock is global.
class Fluid {
 public:
  using Callback = std::function<void()>;
  using Pair = std::pair<costmodel::NodeId, costmodel::NodeId>;  // (sender, receiver)
  /// The links of a route that a flow takes. to_receiver: all but those at the receiver; a flow is no faster
  /// there than the receiver's downlink. at_receiver: the downlink, and shared links at the receiver.
  enum class Part { whole, to_receiver, at_receiver };

  /// `caps` has the greatest rate of some pairs in bytes per second, which all flows of the pair share.
  Fluid(const std::vector<costmodel::Node>& nodes, platforms::Platform platform,
        const std::map<Pair, double>& caps);
  ~Fluid();
  Fluid(const Fluid&) = delete;
  Fluid& operator=(const Fluid&) = delete;

  /// Initialises SimGrid, which takes longer than a small simulation. If a process does this once before it
  /// forks, all its children have SimGrid ready.
  static void prepare();

  /// Simulated time in seconds since the start or the last restart().
  [[nodiscard]] double now() const;
  /// The least delay that surely advances the clock now: differences of its doubles are rounded.
  [[nodiscard]] double clock_step_s() const;
  /// Resets the time to 0. The links are as the platform describes them for `clock_s` on the clock of its
  /// changes (platforms/link_changes.hpp). If `held`, they stay so until release_changes(); otherwise their
  /// clock runs from the start of run(). Must be called before each run(); costs less than another process.
  void restart(double clock_s, bool held);
  /// Starts the clock of the changes of links, if restart() held it.
  void release_changes();
  /// Queues a callback, which runs at the same simulated time after the current callback has returned.
  void schedule_now(Callback callback) { ready_callbacks_.push_back(std::move(callback)); }
  void after(double delay_s, Callback callback);
  /// Runs until no event is left except changes of links. Throws std::runtime_error if a flow uses a link
  /// that stays down permanently.
  void run();
  /// Ends the changes of links, so that run() can return when the last flow has ended.
  void stop();

  /// Starts a flow, which moves at once: latencies are the caller's. The pointer is valid until the flow
  /// ends. A flow costs the same whatever the number of nodes, since it has no actors or mailboxes.
  Flight* start(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes, Part part, Callback ended);
  /// Ends a flow without its callback. Returns how many of its bytes have moved.
  std::int64_t cancel(Flight* flight);
  /// Ends all flows without their callbacks.
  void cancel_all();
  /// Sets the rate of a pair that has a cap. Requires links that change.
  void set_cap(Pair pair, double bytes_per_s);
  /// Called after every change of a link, and after restart().
  void on_change(Callback callback) { links_changed_ = std::move(callback); }
  /// Throws std::runtime_error if a link of the route stays down permanently.
  void refuse_dead_links(costmodel::NodeId from, costmodel::NodeId to) const;
  /// When the next event can happen at the earliest, without further calls: now, while flows move.
  [[nodiscard]] double next_other_event_s() const;

  /// Called after every event of the simulation, when all queued callbacks have run.
  void on_event(Callback callback) { event_passed_ = std::move(callback); }

  /// The platform's present state.
  [[nodiscard]] const platforms::Platform& platform() const { return platform_; }
  /// The platform without what its changes have done.
  [[nodiscard]] const platforms::Platform& described() const { return described_; }
  /// Whether it matters that data take their links when they are sent: latencies differ, or links change.
  [[nodiscard]] bool departures_matter() const { return departures_matter_; }
  [[nodiscard]] bool leaves_site(costmodel::NodeId from, costmodel::NodeId to) const {
    const auto [a, b] = sites({from, to});
    return a != b;
  }
  [[nodiscard]] double latency_s(costmodel::NodeId from, costmodel::NodeId to) const;

 private:
  struct Simgrid;
  [[nodiscard]] std::pair<int, int> sites(Pair pair) const {
    return {nodes_[static_cast<std::size_t>(pair.first)].site,
            nodes_[static_cast<std::size_t>(pair.second)].site};
  }
  void make_links(const std::map<Pair, double>& caps);
  void limit_next_advance();
  void drain();
  /// The time on the clock of the changes, in seconds.
  [[nodiscard]] double changes_clock_s() const;
  void schedule_change(platforms::NextChange next);
  void apply(const platforms::LinkChange& change);
  void tell_of_changes();
  void reset_links();
  void set_rate(const platforms::LinkChange& of, double bytes_per_s);

  const std::vector<costmodel::Node>& nodes_;
  const platforms::Platform described_;  // the state before any change
  platforms::Platform platform_;         // the current state, after the changes so far
  const bool departures_matter_;
  double start_s_ = 0;                   // SimGrid's clock at the last restart; that clock cannot be set back
  double changes_at_start_s_ = 0;        // the clock of the changes at the last restart
  std::optional<double> released_at_s_;  // time at which the clock of the changes began to run
  bool stopped_ = false;
  Callback links_changed_, event_passed_;
  std::deque<Callback> ready_callbacks_;
  std::unique_ptr<Simgrid> simgrid_;
};

}  // namespace fomoe::sim
