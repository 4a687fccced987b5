// Helpers for tests of the simulated network: plans of a single transfer, small enough to compute by hand.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/executor/simulate.hpp"

namespace fomoe::tests {

using costmodel::Collective;
using costmodel::Exchange;
using costmodel::Pattern;
using costmodel::Payload;

// A change of a link's rate.
inline platforms::LinkChange rate_change(platforms::LinkChange::Link link, int from, int to, double at_s,
                                         double bytes_per_s) {
  platforms::LinkChange change;
  change.at_s = at_s;
  change.link = link;
  change.from = from;
  change.to = to;
  change.bandwidth_bytes_per_s = bytes_per_s;
  return change;
}

// Connections of a Linux host whose socket buffers limit nothing.
inline sim::Options linux_options(
    costmodel::CongestionControl control = costmodel::CongestionControl::cubic) {
  sim::Options options;
  options.network = costmodel::linux_host();
  options.network.congestion_control = control;
  options.network.send_buffer_bytes.reset();
  options.network.receive_buffer_bytes.reset();
  return options;
}

// A plan of one round with one transfer and no computation. Payloads are fp32, with 4 bytes per element.
inline costmodel::Plan transfer_only(int nodes, Pattern pattern, costmodel::Collective collective,
                                     std::vector<Exchange> exchanges) {
  costmodel::Plan plan;
  for (int n = 0; n < nodes; ++n) plan.nodes.push_back({costmodel::NodeKind::worker, n});
  plan.rounds = 1;
  costmodel::RoundPlan round;
  round.ops.push_back({"transfer", costmodel::Transfer{pattern, collective, std::move(exchanges)}, {}});
  plan.round = [round](std::int64_t) { return round; };
  return plan;
}

inline Exchange exchange_of(std::vector<int> nodes, std::int64_t elements) {
  Payload payload;
  payload.format = costmodel::plain_format(costmodel::ElementType::fp32);
  payload.elements = elements;
  return {std::move(nodes), {payload}};
}

inline std::vector<int> first(int count) {
  std::vector<int> nodes;
  for (int n = 0; n < count; ++n) nodes.push_back(n);
  return nodes;
}

inline costmodel::Timeline play(const costmodel::Plan& plan, const platforms::Platform& platform,
                                bool bundle = true) {
  return sim::simulate(plan, {0}, platform, [](auto&&...) { return 0.0; }, {bundle});
}

inline sim::Options options_of(costmodel::RingModel model) {
  sim::Options options;
  options.network.ring_model = model;
  return options;
}

inline double end_of(const costmodel::Timeline& timeline, int node) {
  double end_s = 0;
  for (const auto& interval : timeline.intervals) {
    if (interval.node == node) end_s = std::max(end_s, interval.end_s);
  }
  return end_s;
}

inline void check_close(double value, double expected) {
  CHECK(std::abs(value - expected) <= 1e-9 * expected);
}

}  // namespace fomoe::tests
