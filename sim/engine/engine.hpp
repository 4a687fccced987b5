// The event engine of the simulator, on top of SimGrid: a simulated clock with timers, and flows of bytes
// from node to node that share the links. Code that depends on SimGrid's version or overrides its defaults is
// in this folder.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "platforms/link_changes.hpp"
#include "sim/transport/connections.hpp"

namespace fomoe::sim {

struct Departure;  // defined in engine_simgrid.hpp

/// A process may have one Engine only, because SimGrid's clock is global.
class Engine {
 public:
  using Callback = std::function<void()>;

  Engine(const std::vector<costmodel::Node>& nodes, platforms::Platform platform,
         const costmodel::NetworkModel& network, std::uint64_t seed);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Initialises SimGrid, which takes longer than a small simulation. If a process does this once before it
  /// forks, all its children have SimGrid ready.
  static void prepare();

  /// Simulated time in seconds since the start or the last restart().
  [[nodiscard]] double now() const;
  /// Resets the time to 0 and the network to a state in which nothing has been sent. The links are as the
  /// platform describes them for `clock_s` on the clock of its changes (platforms/link_changes.hpp). If
  /// `held`, they stay so until release_changes(); otherwise their clock runs from the start of run(). Must
  /// be called before each run(); costs less than another process. `stream` selects the random draws.
  void restart(double clock_s, bool held, std::uint64_t stream);
  /// Starts the clock of the changes of links, if restart() held it.
  void release_changes();
  /// Seconds from a node's wish to send until the first byte of the flow moves. Must be called once per flow,
  /// because each call counts as a use of the connection.
  double wait_s(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes,
                const ConcurrentFlows& concurrent);
  [[nodiscard]] double call_overhead_s() const { return network_.call_overhead_s; }
  /// Seconds that a node spends on preparing a payload of `bytes` before it sends it.
  [[nodiscard]] double payload_s(double bytes) const {
    return network_.payload_bytes_per_s ? bytes / *network_.payload_bytes_per_s : 0;
  }

  [[nodiscard]] bool leaves_site(costmodel::NodeId from, costmodel::NodeId to) const {
    return nodes_[static_cast<std::size_t>(from)].site != nodes_[static_cast<std::size_t>(to)].site;
  }
  /// Whether the route between two nodes has links that other routes use too.
  [[nodiscard]] bool shares_links(costmodel::NodeId from, costmodel::NodeId to) const {
    const auto [a, b] = sites({from, to});
    return !platform_.shared_by(a, b).empty();
  }
  [[nodiscard]] double latency_s(costmodel::NodeId from, costmodel::NodeId to) const;

  /// Queues a callback, which runs at the same simulated time after the current callback has returned.
  void schedule_now(Callback callback) { ready_callbacks_.push_back(std::move(callback)); }
  void after(double delay_s, Callback callback);
  /// Whether a flow of the pair takes its uplink when it is sent, and its downlink when it arrives
  /// (engine_departures.cpp). If all latencies are equal, this makes no difference: the flow may then take
  /// both when it arrives.
  [[nodiscard]] bool departs_early(costmodel::NodeId from, costmodel::NodeId to) const;
  /// Begins to send a flow: from now on it takes all links on its way except the receiver's downlink. Its
  /// first byte arrives after the latency.
  std::shared_ptr<Departure> depart(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes);
  /// Stops sending, because the first byte has arrived at a receiver that is not ready yet.
  void hold(Departure& departure);
  /// Starts a flow without latency, or goes on with one whose first byte has arrived. Calls `arrived` when
  /// the last byte has arrived.
  void send(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes,
            std::shared_ptr<Departure> departure, Callback arrived);

  /// Runs until no event is left except changes of links. Throws std::runtime_error if a flow uses a link
  /// that stays down permanently.
  void run();
  /// Ends the changes of links, so that run() can return when the last flow has ended.
  void stop() { stopped_ = true; }

 private:
  struct Simgrid;
  using Pair = std::pair<costmodel::NodeId, costmodel::NodeId>;
  [[nodiscard]] std::pair<int, int> sites(Pair pair) const {
    return {nodes_[static_cast<std::size_t>(pair.first)].site,
            nodes_[static_cast<std::size_t>(pair.second)].site};
  }
  /// Starts a SimGrid communication without actors or mailboxes, so the cost of a flow does not grow with
  /// their number.
  void begin_flow(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes, Callback ended);
  /// Goes on with a flow when its first byte has arrived and the receiver is ready.
  void arrive(std::shared_ptr<Departure> departure, Callback arrived);
  void drain();
  /// The time on the clock of the changes, in seconds.
  [[nodiscard]] double changes_clock_s() const;
  void schedule_change(platforms::NextChange next);
  void change(const platforms::LinkChange& change);
  void reset_links();
  void renew_caps();
  void set_rate(const platforms::LinkChange& of, double bytes_per_s);
  void refuse_dead_links(costmodel::NodeId from, costmodel::NodeId to) const;

  const std::vector<costmodel::Node>& nodes_;
  const platforms::Platform described_;  // the state before any change
  platforms::Platform platform_;         // the current state, after the changes so far
  double start_s_ = 0;                   // SimGrid's clock at the last restart; that clock cannot be set back
  double changes_at_start_s_ = 0;        // the clock of the changes at the last restart
  std::optional<double> released_at_s_;  // time at which the clock of the changes began to run
  bool stopped_ = false;
  const costmodel::NetworkModel& network_;
  bool unequal_latencies_ = false;
  Connections connections_;
  std::deque<Callback> ready_callbacks_;
  std::unique_ptr<Simgrid> simgrid_;
};

}  // namespace fomoe::sim
