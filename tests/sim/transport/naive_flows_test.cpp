// Compares flows on platforms of unequal latencies with a simulation in small time steps, written separately.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "sim/executor/simulate.hpp"
#include "tests/draws.hpp"

using namespace fomoe;
using costmodel::Pattern;

namespace {

constexpr double kStep_s = 0.0005;

struct NaiveFlow {
  int from, to;
  double latency_s, to_send, to_receive;
  std::deque<double> way;  // bytes that were sent in each of the last steps, the oldest first
  double queue = 0;        // bytes that wait for the downlink
  double end_s = 0;
};

// Bytes that each flow gets of a port in a step: equal shares, and what one cannot use goes to the others.
std::vector<double> shares(const std::vector<double>& wanted, double bytes) {
  std::vector<double> got(wanted.size(), 0);
  std::vector<std::size_t> order(wanted.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    got[order[i]] = std::min(wanted[order[i]], bytes / static_cast<double>(order.size() - i));
    bytes -= got[order[i]];
  }
  return got;
}

// All flows are wanted at the start. A step of a flow: what the uplink sends arrives one latency later at a
// queue that the downlink empties. A flow has at most so many bytes on its way as the downlink passes on in a
// round trip and 10 ms, since its sender waits for acknowledgements.
double naive_end_s(const platforms::Platform& platform, std::vector<NaiveFlow>& flows) {
  double now_s = 0;
  for (bool running = true; running && now_s < 1000; now_s += kStep_s) {
    running = false;
    for (int site = 0; site < platform.size(); ++site) {
      const platforms::Site& ports = platform.sites[static_cast<std::size_t>(site)];
      std::vector<NaiveFlow*> out, in;
      for (NaiveFlow& flow : flows) {
        if (flow.from == site) out.push_back(&flow);
        if (flow.to == site) in.push_back(&flow);
      }
      std::vector<double> wanted;
      for (const NaiveFlow* flow : out) {
        const double most = (2 * flow->latency_s + 0.01) *
                            platform.sites[static_cast<std::size_t>(flow->to)].downlink_bytes_per_s;
        wanted.push_back(std::min(flow->to_send, std::max(0.0, most - (flow->to_receive - flow->to_send))));
      }
      const std::vector<double> sent = shares(wanted, ports.uplink_bytes_per_s * kStep_s);
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i]->to_send -= sent[i];
        out[i]->way.push_back(sent[i]);
        if (static_cast<double>(out[i]->way.size()) * kStep_s > out[i]->latency_s) {
          out[i]->queue += out[i]->way.front();
          out[i]->way.pop_front();
        }
      }
      wanted.clear();
      for (const NaiveFlow* flow : in) wanted.push_back(flow->queue);
      const std::vector<double> received = shares(wanted, ports.downlink_bytes_per_s * kStep_s);
      for (std::size_t i = 0; i < in.size(); ++i) {
        in[i]->queue -= received[i];
        in[i]->to_receive -= received[i];
        if (in[i]->to_receive <= 1 && in[i]->end_s == 0) in[i]->end_s = now_s;
      }
    }
    for (const NaiveFlow& flow : flows) running = running || flow.end_s == 0;
  }
  double last_s = 0;
  for (const NaiveFlow& flow : flows) last_s = std::max(last_s, flow.end_s);
  return last_s;
}

double simulated_end_s(const platforms::Platform& platform, const std::vector<NaiveFlow>& flows) {
  costmodel::Plan plan;
  for (int site = 0; site < platform.size(); ++site)
    plan.nodes.push_back({costmodel::NodeKind::worker, site, 1});
  plan.rounds = plan.steps = 1;
  costmodel::Transfer transfer{Pattern::point_to_point, costmodel::Collective::direct, {}};
  for (const NaiveFlow& flow : flows) {
    costmodel::Payload payload;
    payload.elements = static_cast<std::int64_t>(flow.to_send / 2);  // bf16
    transfer.exchanges.push_back({{flow.from, flow.to}, {payload}});
  }
  costmodel::RoundPlan round;
  round.ops.push_back({"flows", transfer, {}});
  plan.round = [round](std::int64_t) { return round; };
  return sim::simulate(plan, {0}, platform, [](auto&&...) { return 0.0; }).round_end_s[0];
}

double difference(tests::Draws& draws, int sites, bool equal_ports, auto takes_part) {
  platforms::Platform platform = platforms::uniform(sites, 1e8, 1e8, 0);
  for (platforms::Site& site : platform.sites) {
    if (equal_ports) continue;
    site.uplink_bytes_per_s = 1e8 * draws.between(0.5, 2);
    site.downlink_bytes_per_s = 1e8 * draws.between(0.5, 2);
  }
  const double bytes = 1e7 * draws.between(1, 6);
  std::vector<NaiveFlow> flows;
  for (int from = 0; from < sites; ++from) {
    for (int to = 0; to < sites; ++to) {
      if (from == to) continue;
      platform.set_latency(from, to, draws.between(0.002, 0.15));
      if (!takes_part(from, to)) continue;
      NaiveFlow& flow = flows.emplace_back();
      flow.from = from;
      flow.to = to;
      flow.latency_s = platform.path(from, to).latency_s;
      flow.to_send = flow.to_receive = bytes;
    }
  }
  const double simulated_s = simulated_end_s(platform, flows);
  return simulated_s / naive_end_s(platform, flows) - 1;
}

}  // namespace

TEST_CASE("flows of unequal latencies: fan-out and fan-in end as in small time steps") {
  tests::Draws draws(71);
  for (int i = 0; i < 12; ++i) {
    const int sites = 2 + draws.below(5);
    CAPTURE(i);
    CHECK(std::abs(difference(draws, sites, false, [](int from, int) { return from == 0; })) < 0.01);
    CHECK(std::abs(difference(draws, sites, false, [](int, int to) { return to == 0; })) < 0.01);
  }
}

TEST_CASE("flows of unequal latencies: all to all and any pairs") {
  tests::Draws draws(72);
  for (int i = 0; i < 12; ++i) {
    const int sites = 3 + draws.below(4);
    CAPTURE(i);
    const double all = difference(draws, sites, i % 2 == 0, [](int, int) { return true; });
    const double some =
        difference(draws, sites, i % 2 == 0, [&](int from, int to) { return (from + to + i) % 3 != 0; });
    CHECK(std::abs(all) < 0.01);
    CHECK(std::abs(some) < 0.01);
  }
}
