// SimGrid as a clock with flows on it: timers, and bytes that move from node to node and share the links.
// Everything that differs between SimGrid's versions or misleads in its defaults is in here.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "platforms/platform.hpp"
#include "sim/transport/flow_start.hpp"
#include "sim/transport/probe_clock.hpp"
#include "sim/transport/send_buffers.hpp"
#include "sim/transport/sender_rates.hpp"

namespace fomoe::sim {

/// One per process: SimGrid's clock is global.
class Engine {
 public:
  using Callback = std::function<void()>;

  Engine(const std::vector<costmodel::Node>& nodes, platforms::Platform platform,
         const costmodel::NetworkModel& network, std::uint64_t seed, costmodel::Senders senders);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Sets SimGrid up, which takes longer than a small simulation: done once before forking, it serves every
  /// child.
  static void prepare();

  /// Seconds since the start, or since the last restart.
  [[nodiscard]] double now() const;
  /// After run(): the network as it was at first, and time 0. Cheaper than another process.
  void restart();
  /// Seconds before the first byte of a flow moves; asked once for each flow.
  double wait_s(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes, const Beside& beside);
  [[nodiscard]] double call_overhead_s() const { return network_.call_overhead_s; }
  /// That a node spends on what it is about to send.
  [[nodiscard]] double payload_s(double bytes) const {
    return network_.payload_bytes_per_s ? bytes / *network_.payload_bytes_per_s : 0;
  }

  [[nodiscard]] bool leaves_site(costmodel::NodeId from, costmodel::NodeId to) const {
    return nodes_[static_cast<std::size_t>(from)].site != nodes_[static_cast<std::size_t>(to)].site;
  }
  [[nodiscard]] bool early_receives() const { return network_.early_receives; }
  [[nodiscard]] double latency_s(costmodel::NodeId from, costmodel::NodeId to) const;
  [[nodiscard]] bool buffers_sends() const { return network_.send_buffer_bytes.has_value(); }
  /// Where sends are buffered, and the node wishes to send: whether its kernel takes it at once.
  bool takes(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes) {
    return buffers_sends() && send_buffers_.holds({from, to}, bytes);
  }

  /// Calls back as soon as what runs now has returned.
  void soon(Callback callback) { soon_.push_back(std::move(callback)); }
  void after(double delay_s, Callback callback);
  /// Bytes start to move now, without latency, or where sends are buffered when all that the node sent that
  /// one before has arrived. `arrived`: the last one has. `taken`, where sends are buffered and it is not
  /// empty: no more than the buffer holds has yet to arrive.
  void send(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes, Callback arrived,
            Callback taken = {});

  /// Runs until nothing is left to happen, save changes of links. Throws std::runtime_error where a flow is
  /// on a link that is down for ever.
  void run();
  /// Nothing more is wanted: links no longer change.
  void stop() { stopped_ = true; }

 private:
  struct Simgrid;
  using Pair = std::pair<costmodel::NodeId, costmodel::NodeId>;
  [[nodiscard]] bool paces(Pair pair) const;
  [[nodiscard]] ProbeClock::Environment around_probes();
  [[nodiscard]] SenderRates::Environment around_rates();
  [[nodiscard]] SendBuffers::Environment around_buffers();
  void set_valve(Pair pair);
  [[nodiscard]] std::pair<int, int> sites(Pair pair) const;
  [[nodiscard]] double round_trip_s(Pair pair) const;
  [[nodiscard]] double fastest_bytes_per_s(Pair pair) const;
  /// No actors and no mailboxes: a flow costs the same however many there are.
  void fly(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes, Callback ended);
  void drain();
  void schedule_change(std::size_t index, double period_start_s);
  void change(const platforms::LinkChange& change);
  void undo_changes();
  void set_rate(const platforms::LinkChange& of, double bytes_per_s);
  void refuse_dead_links(costmodel::NodeId from, costmodel::NodeId to) const;

  const std::vector<costmodel::Node>& nodes_;
  const platforms::Platform at_first_;
  platforms::Platform platform_;  // as it is now
  double start_s_ = 0;            // by SimGrid's clock, which cannot be set back
  bool stopped_ = false;
  const costmodel::NetworkModel& network_;
  bool simulates_senders_ = false;
  ProbeClock probe_clock_;    // where it does
  SenderRates sender_rates_;  // there too
  SendBuffers send_buffers_;
  FlowStart flow_start_;
  std::deque<Callback> soon_;
  std::unique_ptr<Simgrid> simgrid_;
};

}  // namespace fomoe::sim
