#include "sim/transport/tcp_transport.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/math/draws.hpp"

namespace fomoe::sim {

using costmodel::NodeId;

class TcpMessage : public Message, private PartEvents {
 public:
  TcpMessage(TcpTransport& transport, NodeId from, NodeId to, std::int64_t bytes, MessageEvents& events,
             FlowRef ref)
      : transport_(transport), events_(events), bytes_(bytes), from_(from), to_(to), ref_(ref) {}

  void offer(double overhead_s) override {
    overhead_s_ = overhead_s;
    jitter_s_ = transport_.draw_jitter_s(from_, to_) + transport_.draw_delay_s(from_, to_);
    offered_ = true;
    go_if_ready();
  }
  void accept() override {
    told_s_ = fluid().now() + fluid().latency_s(to_, from_);
    each_line([this](int line, std::int64_t /*bytes*/, std::int64_t /*parts*/) {
      transport_.tcp_.announce(fluid().now(), to_, from_, line);
    });
    accepted_ = true;
    go_if_ready();
  }

 private:
  [[nodiscard]] Fluid& fluid() { return transport_.fluid(); }

  void go_if_ready() {
    if (!offered_ || !accepted_) return;
    const double at_s = std::max(fluid().now(), told_s_) + jitter_s_;
    const auto go = [this] {
      if (!events_.abandoned()) events_.when_first(ref_, [this] { start(); });
    };
    at_s > fluid().now() ? fluid().after(at_s - fluid().now(), go) : go();
  }

  void start() {
    if (events_.abandoned()) return;
    events_.moving(ref_, overhead_s_);
    each_line([this](int, std::int64_t, std::int64_t) { ++unwritten_; });
    undelivered_ = unwritten_;
    each_line([this](int line, std::int64_t bytes, std::int64_t parts) {
      transport_.tcp_.put(fluid().now(), from_, to_, line, bytes, parts, *this);
    });
    transport_.run_soon();
  }

  /// Calls `use` with each line that carries parts of the message, their bytes, and their number.
  template <class Use>
  void each_line(const Use& use) {
    const int connections = transport_.connections(from_, to_);
    const std::int64_t parts = costmodel::parts_of_message(bytes_, connections);
    std::int64_t first = 0;
    for (int line = 0; first < parts; ++line) {
      const std::int64_t next = std::min(parts, first + TcpNetwork::alike(connections, line));
      use(line, bytes_ * next / parts - bytes_ * first / parts, next - first);
      first = next;
    }
  }

  void written(double at_s) override {
    if (--unwritten_ > 0) return;
    transport_.at(at_s, [this, exists = std::weak_ptr<char>(exists_)] {
      if (!exists.expired()) tell_sent();
    });
  }

  void tell_sent() {
    if (events_.abandoned() || std::exchange(told_sent_, true)) return;
    if (events_.asks_for_leaving()) events_.all_left(ref_);
    events_.sent(ref_);
  }

  void delivered(double at_s) override {
    if (--undelivered_ > 0) return;
    transport_.at(at_s, [this] {
      tell_sent();  // callbacks of the same time may come in any order
      if (!events_.abandoned()) events_.arrived(ref_);
    });
  }

  TcpTransport& transport_;
  MessageEvents& events_;
  std::int64_t bytes_;
  NodeId from_, to_;
  FlowRef ref_;
  double overhead_s_ = 0, jitter_s_ = 0;
  double told_s_ = 0;  // when the sender knows that the receiver is ready
  bool offered_ = false, accepted_ = false, told_sent_ = false;
  std::shared_ptr<char> exists_ = std::make_shared<char>();  // arrived() may destroy the message
  int unwritten_ = 0, undelivered_ = 0;                      // parts, one for each stream
};

TcpTransport::TcpTransport(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform,
                           const costmodel::NetworkModel& network, std::uint64_t seed)
    // Links that limit each connection do so in the TcpNetwork.
    : FluidTransport(nodes, platform, platform, network, seed),
      tcp_(nodes, network, seed, [this](NodeId from, NodeId to) { fluid_.refuse_dead_links(from, to); }),
      receives_ahead_(network.receives_ahead) {
  fluid_.on_change([this] {
    tcp_.change(fluid_.now());
    run_soon();
  });
}

void TcpTransport::restart(double clock_s, bool held, std::uint64_t stream) {
  FluidTransport::restart(clock_s, held, stream);  // first: the platform's links are then those at the start
  tcp_.restart(fluid_.platform(), fluid_.described(), stream);
  wakes_s_ = std::numeric_limits<double>::infinity();
  delays_ = 0;
}

double TcpTransport::draw_delay_s(NodeId from, NodeId to) {
  constexpr double kMost_round_trips = 0.05;
  const std::uint64_t pair =
      static_cast<std::uint64_t>(from) * nodes_.size() + static_cast<std::uint64_t>(to);
  return kMost_round_trips * (fluid_.latency_s(from, to) + fluid_.latency_s(to, from)) *
         costmodel::draw(seed_ + 1, stream_, pair, delays_++);
}

void TcpTransport::cancel_all() {
  FluidTransport::cancel_all();
  tcp_.close_all();
}

std::unique_ptr<Message> TcpTransport::message(NodeId from, NodeId to, std::int64_t bytes,
                                               MessageEvents& events, FlowRef ref) {
  if (!fluid_.leaves_site(from, to)) return FluidTransport::message(from, to, bytes, events, ref);
  return std::make_unique<TcpMessage>(*this, from, to, bytes, events, ref);
}

void TcpTransport::at(double at_s, Fluid::Callback callback) {
  until_s_ = std::min(until_s_, at_s);
  fluid_.after(std::max(0.0, at_s - fluid_.now()), std::move(callback));
}

void TcpTransport::wake_at(double at_s) {
  wakes_s_ = std::max(at_s, fluid_.now());
  // A shorter delay than the clock can show would not bring the clock to the event, and so on for ever.
  const double delay_s =
      wakes_s_ > fluid_.now() ? std::max(wakes_s_ - fluid_.now(), fluid_.clock_step_s()) : 0;
  fluid_.after(delay_s, [this, wake = ++wakes_] {
    if (wake == wakes_) run();  // otherwise another one has been planned
  });
}

void TcpTransport::run_soon() {
  if (wakes_s_ > fluid_.now()) wake_at(fluid_.now());
}

void TcpTransport::run() {
  wakes_s_ = std::numeric_limits<double>::infinity();
  until_s_ = fluid_.next_other_event_s();
  tcp_.run(until_s_);
  if (const double next_s = tcp_.next_event_s(); next_s < std::numeric_limits<double>::infinity())
    wake_at(next_s);
}

}  // namespace fomoe::sim
