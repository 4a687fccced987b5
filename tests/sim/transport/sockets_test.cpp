// Tests the model of sockets, computed by hand: receives that are posted early, and send buffers. The network
// has one uplink of 1 MB/s and a one-way latency of 50 ms.
#include <doctest/doctest.h>

#include "sim/executor/simulate.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;
using namespace fomoe::tests;

namespace {

constexpr double kLatency_s = 0.05, kRate = 1e6;

platforms::Platform two_sites() { return platforms::uniform(2, kRate, kRate, kLatency_s); }

costmodel::Op transfer_of(std::int64_t elements, std::vector<costmodel::OpId> after) {
  return {"transfer",
          costmodel::Transfer{Pattern::point_to_point, Collective::ring, {exchange_of({0, 1}, elements)}},
          std::move(after)};
}

// A plan in which node 1 computes for a second, and then node 0 sends it 2 MB.
costmodel::Plan late_receiver() {
  costmodel::Plan plan = transfer_only(2, Pattern::point_to_point, Collective::ring, {});
  costmodel::RoundPlan round;
  round.ops.push_back({"think", costmodel::Compute{costmodel::Work::whole_step, {1}, 1, 1}, {}});
  round.ops.push_back(transfer_of(500'000, {0}));
  plan.round = [round](std::int64_t) { return round; };
  return plan;
}

costmodel::Timeline run(const costmodel::Plan& plan, const sim::Options& options, int rounds = 1) {
  std::vector<std::int64_t> sequence;
  for (int r = 0; r < rounds; ++r) sequence.push_back(r);
  return sim::simulate(
      plan, sequence, two_sites(), [](auto&&...) { return 1.0; }, options);
}

}  // namespace

TEST_CASE(
    "early receives: bytes come while the receiver computes; otherwise when it has come to the exchange") {
  sim::Options options;
  check_close(run(late_receiver(), options).round_end_s[0], 1 + 2e6 / kRate);
  options.network.early_receives = true;
  check_close(run(late_receiver(), options).round_end_s[0], kLatency_s + 2e6 / kRate);
}

TEST_CASE(
    "early receives: word of them takes the latency of the way, from when the receiver came to the round") {
  // No node computes. The receiver's request arrives at 50 ms, and the sender's own latency passes meanwhile.
  const costmodel::Plan plan =
      transfer_only(2, Pattern::point_to_point, Collective::ring, {exchange_of({0, 1}, 500'000)});
  sim::Options options;
  options.network.early_receives = true;
  check_close(run(plan, options).round_end_s[0], kLatency_s + 2e6 / kRate);
  // In the second round of a late receiver the sender is ahead. The receiver posts the receive at 1 s + 2 s,
  // and the sender learns of it 50 ms later.
  sim::Options buffered = options;
  buffered.network.send_buffer_bytes = 1e9;  // the sender ends the first round at once
  check_close(run(plan, buffered, 2).round_end_s[1], 2 * (kLatency_s + 2e6 / kRate));
}

TEST_CASE("send buffer: the sender has done when the rest fits, the receiver when all has come") {
  const costmodel::Plan plan =
      transfer_only(2, Pattern::point_to_point, Collective::ring, {exchange_of({0, 1}, 500'000)});
  sim::Options options;
  options.network.send_buffer_bytes = 0.5e6;
  const costmodel::Timeline part = run(plan, options);
  check_close(end_of(part, 0), kLatency_s + 1.5e6 / kRate);
  check_close(end_of(part, 1), kLatency_s + 2e6 / kRate);
  options.network.send_buffer_bytes = 2e6;
  const costmodel::Timeline whole = run(plan, options);
  CHECK(end_of(whole, 0) == 0);
  check_close(end_of(whole, 1), kLatency_s + 2e6 / kRate);
}

TEST_CASE(
    "send buffer: a sender goes on in time where its first byte waits for slow start, or for the receiver") {
  const costmodel::Plan plan =
      transfer_only(2, Pattern::point_to_point, Collective::ring, {exchange_of({0, 1}, 500'000)});
  sim::Options options;
  options.network.send_buffer_bytes = 1.999e6;
  options.network.initial_window_bytes = 1e3;
  // 7 windows of 1 to 64 kB leave one per round trip; the link alone would need 127 ms for them.
  check_close(end_of(run(plan, options), 0), kLatency_s + 7 * 0.1 - 0.127 + 1e3 / kRate);
  const costmodel::Timeline late = run(late_receiver(), options);
  check_close(end_of(late, 0), 1 + 1e3 / kRate);
}

TEST_CASE("send buffer: it holds what several messages leave to be sent, not so much of each") {
  costmodel::Plan plan = transfer_only(2, Pattern::point_to_point, Collective::ring, {});
  costmodel::RoundPlan round;
  round.ops.push_back(transfer_of(250'000, {}));
  round.ops.push_back(transfer_of(250'000, {0}));
  plan.round = [round](std::int64_t) { return round; };
  sim::Options options;
  options.network.send_buffer_bytes = 1.2e6;
  options.network.early_receives =
      true;  // otherwise the second message leaves only when the first has arrived
  const costmodel::Timeline two = run(plan, options);
  check_close(end_of(two, 0), kLatency_s + 0.8e6 / kRate);
  check_close(end_of(two, 1), kLatency_s + 2e6 / kRate);
}

TEST_CASE("send buffer: with bbr it grows with what the path holds, up to the model's") {
  const costmodel::Plan plan =
      transfer_only(2, Pattern::point_to_point, Collective::ring, {exchange_of({0, 1}, 500'000)});
  sim::Options options;
  options.network.congestion_control = costmodel::CongestionControl::bbr;
  options.network.send_buffer_bytes = 4e6;
  const double pipe_bytes = 2 * kLatency_s * kRate;
  check_close(end_of(run(plan, options), 0),
              kLatency_s + (2e6 - costmodel::kBbrSendBuffer_pipes * pipe_bytes) / kRate);
  options.network.send_buffer_bytes = 0.5e6;
  check_close(end_of(run(plan, options), 0), kLatency_s + 1.5e6 / kRate);
}

TEST_CASE("send buffer: what goes out first is taken first, whichever was wished first") {
  // Node 1 first requests only the second of two messages, and then the first one.
  costmodel::Plan plan = transfer_only(2, Pattern::point_to_point, Collective::ring, {});
  costmodel::RoundPlan round;
  round.ops.push_back({"think", costmodel::Compute{costmodel::Work::whole_step, {1}, 1, 1}, {}});
  round.ops.push_back(transfer_of(500'000, {0}));
  round.ops.push_back(transfer_of(500'000, {}));
  plan.round = [round](std::int64_t) { return round; };
  sim::Options options;
  options.network.send_buffer_bytes = 0.1e6;
  const costmodel::Timeline two = run(plan, options);
  std::vector<double> ends(3);
  for (const auto& interval : two.intervals)
    if (interval.node == 0) ends[static_cast<std::size_t>(interval.op)] = interval.end_s;
  check_close(ends[2], kLatency_s + 1.9e6 / kRate);
  check_close(ends[1], kLatency_s + 3.9e6 / kRate);
}

TEST_CASE("send buffer: what has arrived has widened the window, also of the message that just ends") {
  const costmodel::Plan plan =
      transfer_only(2, Pattern::all_reduce, Collective::direct, {exchange_of({0, 1}, 500'000)});
  sim::Options options;
  options.network.send_buffer_bytes = 4e6;
  options.network.initial_window_bytes = 10e3;
  // Four windows of 10 to 80 kB leave one per round trip; then both halves move at the link's rate.
  check_close(run(plan, options).round_end_s[0], kLatency_s + 4 * 0.1 - 0.15 + 1 + kLatency_s + 1);
}

TEST_CASE("send buffer: a sender that shares its link goes on as soon as what it shares lets it") {
  const costmodel::Plan plan = transfer_only(3, Pattern::point_to_point, Collective::ring,
                                             {exchange_of({0, 1}, 500'000), exchange_of({0, 2}, 500'000)});
  sim::Options options;
  options.network.send_buffer_bytes = 0.5e6;
  const costmodel::Timeline two = sim::simulate(
      plan, {0}, platforms::uniform(3, kRate, kRate, kLatency_s), [](auto&&...) { return 0.0; }, options);
  CHECK(std::abs(end_of(two, 0) - (kLatency_s + 3e6 / kRate)) < 1e-6);
}

TEST_CASE("send buffer: what one node sends another arrives in order; without it they share the link") {
  // 2 MB and 1 MB start at the same time.
  costmodel::Plan plan = transfer_only(2, Pattern::point_to_point, Collective::ring, {});
  costmodel::RoundPlan round;
  round.ops.push_back(transfer_of(500'000, {}));
  round.ops.push_back(transfer_of(250'000, {}));
  plan.round = [round](std::int64_t) { return round; };
  const auto end_at_receiver = [](const costmodel::Timeline& timeline, costmodel::OpId op) {
    for (const auto& interval : timeline.intervals) {
      if (interval.node == 1 && interval.op == op) return interval.end_s;
    }
    return -1.0;
  };
  sim::Options options;
  const costmodel::Timeline shared = run(plan, options);
  check_close(end_at_receiver(shared, 0), kLatency_s + 3e6 / kRate);
  check_close(end_at_receiver(shared, 1), kLatency_s + 2e6 / kRate);
  options.network.send_buffer_bytes = 1;
  const costmodel::Timeline in_order = run(plan, options);
  check_close(end_at_receiver(in_order, 0), kLatency_s + 2e6 / kRate);
  check_close(end_at_receiver(in_order, 1), kLatency_s + 3e6 / kRate);
}

TEST_CASE("where all sites are alike, neither changes when an all-reduce ends") {
  for (const Collective collective : {Collective::ring, Collective::direct}) {
    const costmodel::Plan plan =
        transfer_only(4, Pattern::all_reduce, collective, {exchange_of(first(4), 1'000'000)});
    const auto platform = platforms::uniform(4, kRate, kRate, kLatency_s);
    const auto end_s = [&](const sim::Options& options) {
      return sim::simulate(
                 plan, {0}, platform, [](auto&&...) { return 0.0; }, options)
          .round_end_s[0];
    };
    sim::Options sockets;
    sockets.network.early_receives = true;
    sockets.network.send_buffer_bytes = 0.1e6;
    check_close(end_s(sockets), end_s({}));
  }
}
