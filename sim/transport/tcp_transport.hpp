// Messages between real hosts, over TCP connections with windows, socket buffers and queues (sim/tcp), as
// Gloo sends them. The receiver tells the sender when it is ready for a message, some steps of a collective
// ahead; the sender goes on when the message is in its socket's buffer, not when it has arrived
// (gloo/transport/tcp/pair.cc).
#pragma once
#include <limits>
#include <memory>
#include <vector>

#include "sim/tcp/tcp_network.hpp"
#include "sim/transport/fluid_transport.hpp"

namespace fomoe::sim {

/// Messages inside a site are those of FluidTransport.
class TcpTransport : public FluidTransport {
 public:
  /// As for FluidTransport. Requires network.initial_window_bytes.
  TcpTransport(const std::vector<costmodel::Node>& nodes, const platforms::Platform& platform,
               const costmodel::NetworkModel& network, std::uint64_t seed);

  void restart(double clock_s, bool held, std::uint64_t stream) override;
  std::unique_ptr<Message> message(costmodel::NodeId from, costmodel::NodeId to, std::int64_t bytes,
                                   MessageEvents& events, FlowRef ref) override;
  void cancel_all() override;
  [[nodiscard]] int steps_accepted_ahead() const override { return receives_ahead_; }

 private:
  friend class TcpMessage;
  /// A small delay of a message, in seconds: hosts are never ready at once.
  double draw_delay_s(costmodel::NodeId from, costmodel::NodeId to);
  /// Calls back at that time, before which the network does not run on.
  void at(double at_s, Fluid::Callback callback);
  void wake_at(double at_s);
  /// Runs the network when all that happens now has happened.
  void run_soon();
  /// Runs the network as far as nothing else can happen in the simulation.
  void run();

  TcpNetwork tcp_;
  int receives_ahead_;
  double until_s_ = 0;                                        // how far the network may run
  double wakes_s_ = std::numeric_limits<double>::infinity();  // when run() will be called
  std::uint64_t delays_ = 0;                                  // that were drawn
  std::uint64_t wakes_ = 0;                                   // calls of run() that have been planned
};

}  // namespace fomoe::sim
