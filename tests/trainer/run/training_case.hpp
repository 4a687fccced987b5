// Small training runs in one process, for tests of the effect of methods on a model.
#pragma once
#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/collective_steps.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/execution/executor.hpp"

namespace fomoe::trainer::testing {

/// 3 rounds of 4 steps with 8 sequences each.
inline costmodel::Scenario training_scenario(const std::string& method, int sites, int overlap = 0) {
  costmodel::Scenario scenario;
  scenario.model = tiny_shape();
  scenario.workload = {/*tokens=*/12 * 8 * scenario.model.sequence_length, /*global_batch_sequences=*/8};
  scenario.strategy.method = costmodel::find_method(method);
  scenario.strategy.local_steps = 4;
  scenario.strategy.expert_overlap = overlap == 0 ? sites : overlap;
  scenario.strategy.collective = costmodel::Collective::direct;
  scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::fp32);
  scenario.compute = costmodel::GivenStepTime{1};
  scenario.platform = platforms::uniform(sites, 1e9, 1e9, 0.0);
  return scenario;
}

/// fp64 throughout, so that differences show the effect of a method rather than rounding.
inline TrainingOptions exact_options() {
  TrainingOptions options;
  options.dtype = at::kDouble;
  options.exact_wire = true;
  options.inner.learning_rate = 0.01;
  // Adam divides by √v. Where a gradient is nearly zero, the usual 1e-8 would amplify differences of 1e-16.
  options.inner.epsilon = 1e-3;
  return options;
}

/// The options of a real run: fp32, with the usual epsilon.
inline TrainingOptions real_options() {
  TrainingOptions options;
  options.inner.learning_rate = 0.01;
  return options;
}

/// Trains all sites of a scenario in this process.
struct Training {
  /// Uses one thread: the tensors are so small that several threads would spend more time waiting than
  /// working.
  static const costmodel::Scenario& one_thread(const costmodel::Scenario& scenario) {
    at::set_num_threads(1);
    return scenario;
  }
  Training(const costmodel::Scenario& what, const TrainingOptions& options)
      : scenario(one_thread(what)),
        plan(costmodel::make_plan(scenario)),
        transport(plan.nodes),
        batches(Corpus::synthetic(scenario.model.vocabulary, 50'000, scenario.seed),
                scenario.model.sequence_length, scenario.workload.global_batch_sequences,
                /*validation_sequences=*/8, scenario.seed),
        executor(scenario, plan, transport, batches, options) {}

  Training& run(std::int64_t rounds) {
    for (std::int64_t i = 0; i < rounds; ++i) executor.run_round(next_round++);
    return *this;
  }
  Training& run() { return run(plan.rounds - next_round); }

  [[nodiscard]] at::Tensor parameter(costmodel::NodeId node, std::size_t index) {
    return executor.worker(node).model().parameters().at(index).master.detach();
  }
  /// All parameters of a node in one flat tensor.
  [[nodiscard]] at::Tensor weights(costmodel::NodeId node) {
    std::vector<at::Tensor> parts;
    for (const Parameter& parameter : executor.worker(node).model().parameters())
      parts.push_back(parameter.master.detach().reshape({-1}));
    return at::cat(parts);
  }
  [[nodiscard]] at::Tensor tensor(costmodel::NodeId node, const std::string& name) {
    for (const auto& [known, tensor] : executor.worker(node).state()) {
      if (known == name) return tensor;
    }
    throw std::invalid_argument("no tensor " + name);
  }

  costmodel::Scenario scenario;
  costmodel::Plan plan;
  InProcessTransport transport;
  Batches batches;
  Executor executor;
  std::int64_t next_round = 0;
};

/// The largest difference between the weights of two trainings over all nodes, relative to the largest
/// weight.
inline double farthest_weights(Training& a, Training& b) {
  double farthest = 0;
  for (const costmodel::NodeId node : b.executor.hosted()) {
    const at::Tensor expected = b.weights(node);
    farthest = std::max(farthest,
                        largest_difference(a.weights(node), expected) / expected.abs().max().item<double>());
  }
  return farthest;
}

/// What each node sends and receives in the whole run according to the plan's operations, chunk by chunk.
inline std::vector<Traffic> planned_traffic(const costmodel::Plan& plan) {
  std::vector<Traffic> all(plan.nodes.size());
  for (Traffic& of_node : all) of_node.sent_to.resize(plan.nodes.size(), 0);
  for (std::int64_t round = 0; round < plan.rounds; ++round) {
    for (const costmodel::Op& op : plan.round(round).ops) {
      const auto* transfer = std::get_if<costmodel::Transfer>(&op.what);
      if (transfer == nullptr) continue;
      for (const costmodel::Exchange& exchange : transfer->exchanges) {
        const int n = static_cast<int>(exchange.nodes.size());
        const costmodel::CollectiveSteps steps(transfer->pattern, transfer->collective, n);
        for (const costmodel::Payload& payload : exchange.payloads) {
          for (int step = 0; step < steps.count(); ++step) {
            steps.each(step, [&](const costmodel::Sending& one) {
              std::int64_t bytes = one.whole ? payload.bytes() : 0;
              for (int c = one.first; c < one.first + one.count; ++c)
                bytes += payload.format.bytes(costmodel::chunk_elements(payload.elements, n, c));
              const auto from = static_cast<std::size_t>(exchange.nodes[static_cast<std::size_t>(one.from)]),
                         to = static_cast<std::size_t>(exchange.nodes[static_cast<std::size_t>(one.to)]);
              if (plan.nodes[from].site == plan.nodes[to].site) return;
              all[from].sent[static_cast<std::size_t>(payload.traffic)] += bytes;
              all[from].sent_to[to] += bytes;
              all[to].received[static_cast<std::size_t>(payload.traffic)] += bytes;
            });
          }
        }
      }
    }
  }
  return all;
}

inline void check_traffic(const Traffic& counted, const Traffic& planned) {
  CHECK(counted.sent == planned.sent);
  CHECK(counted.sent_to == planned.sent_to);
  CHECK(counted.received == planned.received);
  CHECK(counted.total_sent() > 0);
}

}  // namespace fomoe::trainer::testing
