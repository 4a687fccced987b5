// Asynchronous DiLoCo: after K local steps a worker sends its pseudo-gradient to a server at the first site.
// The server applies the pseudo-gradient at once and sends the new model back. The worker continues as soon
// as it has the model.
//
// Without `staleness`, each worker trains at its own pace until all sequences of the run are trained: a fast
// worker has more cycles of local steps, upload and download than a slow one, and the first site's own
// worker, which sends nothing, has most (shared/paced_rounds.hpp).
//
// With s = `staleness`, a worker waits for slower sites if it is more than s rounds ahead: the model after
// round r is sent only when the pseudo-gradients of round r − s of all workers have arrived
// (stale-synchronous, Ho et al. 2013). s = 0 is the same barrier as in FedAvg. Every worker trains all
// rounds, so the run ends with the slowest worker. The bytes of a cycle are the same as for FedAvg
// (fedavg.cpp).
#include <algorithm>

#include "costmodel/methods/all.hpp"
#include "costmodel/methods/shared/paced_rounds.hpp"
#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

namespace {

constexpr OpId kLocalSteps = 0;
// Ids of the operations of worker w. The downloads of all `workers` come after all uploads.
constexpr OpId up_of(int w) { return 1 + 2 * w; }
constexpr OpId applied_of(int w) { return up_of(w) + 1; }
constexpr OpId down_of(int w, int workers) { return 1 + 2 * workers + w; }

// The download of `worker` waits for the other workers' pseudo-gradients of s rounds before.
void bound_staleness(Op& down, int worker, int workers, std::int64_t staleness) {
  for (int other = 0; other < workers; ++other) {
    if (other == worker) continue;
    if (staleness > 0) {
      down.after_earlier.push_back({up_of(other), staleness});
    } else {
      down.after.push_back(up_of(other));
    }
  }
}

Plan plan_in_lockstep(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  const std::optional<std::int64_t> staleness = scenario.strategy.staleness;
  Plan plan = plan_of_rounds(scenario, local_steps);
  overlap_rounds(plan, local_steps);
  plan.classes[0].reach = std::max<std::int64_t>(1, staleness.value_or(1));
  const std::vector<NodeId> workers = all_workers(scenario);
  const int count = static_cast<int>(workers.size());
  const auto server = static_cast<NodeId>(plan.nodes.size());
  plan.nodes.push_back({NodeKind::server, 0, 0});
  plan.notes.push_back(
      "async_diloco: all sites train the same number of rounds; the "
      "server is at the first site, and its memory is not counted");
  const Exchange up = full_model_exchange(scenario, plan.groups, {Content::pseudo_gradient});
  const Exchange down = full_model_exchange(scenario, plan.groups, {Content::parameter});

  plan.round = [=](std::int64_t index) {
    RoundPlan round;
    round.ops.push_back(
        compute_op(scenario, "local steps", Work::whole_step, steps_of_round(plan, local_steps, index), {}));
    // All operations after the local steps are detached because of the server: it accepts the next upload of
    // a fast worker while it still waits for a slow one. A worker waits for its download here.
    const auto send = [&](const char* name, NodeId from, NodeId to, const Exchange& what, OpId after) {
      Exchange exchange = what;
      exchange.nodes = {from, to};
      round.ops.push_back({name, Transfer{Pattern::point_to_point, Collective::direct, {exchange}}, {after}});
      round.ops.back().detached = true;
    };
    for (int w = 0; w < count; ++w) {
      round.ops[kLocalSteps].after_earlier.push_back({down_of(w, count), 1});
      send("pseudo-gradient to the server", workers[static_cast<std::size_t>(w)], server, up, kLocalSteps);
      round.ops.push_back(
          {"outer step of the server", Compute{Work::outer_step, {server}, 1, 1}, {up_of(w)}, {}, true});
    }
    for (int w = 0; w < count; ++w) {
      send("model to the worker", server, workers[static_cast<std::size_t>(w)], down, applied_of(w));
      if (staleness) bound_staleness(round.ops.back(), w, count, *staleness);
    }
    return round;
  };
  return plan;
}

Plan plan(const Scenario& scenario) {
  return scenario.strategy.staleness ? plan_in_lockstep(scenario) : plan_of_paces(scenario);
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = through_first_site(axes, fixed);
  // With `staleness`, and among links that differ, sites begin at different times, which a star that starts
  // at once does not.
  summary.stages[0].between = Between::any;
  return summary;
}

}  // namespace

Method async_diloco() {
  Method method;
  method.name = "async_diloco";
  method.summary =
      "Every K steps, each site sends the pseudo-gradients of the whole model to a server. The server "
      "answers each site at once and does not wait for the other sites.";
  method.axes = {"local_steps", "staleness", "dynamic_local_steps", "payload_dtype", "parameter_dtype"};
  // Differences go up, parameters come down.
  method.encoded_differences = method.encoded_parameters = 0.5;
  method.source =
      "Liu et al. 2024, Asynchronous Local-SGD (arXiv 2401.09135); Ho et al. 2013, Stale Synchronous "
      "Parallel";
  method.outer_bytes_per_parameter = 4;  // fp32 reference model of the pseudo-gradient
  method.not_modelled =
      "delayed Nesterov updates and the grace period of the server, which change quality but no bytes";
  method.rounds_late = 1;
  method.assumptions =
      "without staleness, each transfer has the rate that the other sites leave of the links on average, and "
      "the rates at which sites train add up";
  method.own_pace = [](const Strategy& strategy) { return !strategy.staleness; };
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
