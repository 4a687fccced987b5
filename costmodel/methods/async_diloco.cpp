// Asynchronous DiLoCo: after K local steps a worker sends its pseudo-gradient to a server at the first site.
// The server applies the pseudo-gradient at once and sends the new model back. The worker continues as soon
// as it has the model.
//
// Without `staleness`, each worker trains at its own pace until all sequences of the run are trained: a fast
// worker has more cycles of local steps, upload and download than a slow one, and the first site's own
// worker, which sends nothing, has most. own_pace.hpp has the duration of each worker's cycle and of the run.
// A round of the plan has as many steps as a round of DiLoCo; a fast worker has several cycles in some
// rounds, and a slow one none. Flows have the rates that the others leave on average: how transfers of equal
// sites happen to meet would otherwise decide how long the run takes.
//
// With s = `staleness`, a worker waits for slower sites if it is more than s rounds ahead: the model after
// round r is sent only when the pseudo-gradients of round r − s of all workers have arrived
// (stale-synchronous, Ho et al. 2013). s = 0 is the same barrier as in FedAvg. Every worker trains all
// rounds, so the run ends with the slowest worker. The bytes of a cycle are the same as for FedAvg
// (fedavg.cpp).
#include <algorithm>
#include <cmath>

#include "costmodel/compute/own_pace.hpp"
#include "costmodel/methods/all.hpp"
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

// Rounds in which each worker has its own number of cycles.
class PacedRounds {
 public:
  PacedRounds(const Scenario& scenario, const Plan& plan, NodeId server, std::vector<Pace> paces)
      : paces_(std::move(paces)),
        server_(server),
        rounds_(plan.rounds),
        up_(full_model_exchange(scenario, plan.groups, {Content::pseudo_gradient})),
        down_(full_model_exchange(scenario, plan.groups, {Content::parameter})) {}

  [[nodiscard]] RoundPlan round(std::int64_t index) const {
    RoundPlan round;
    for (std::size_t w = 0; w < paces_.size(); ++w) {
      for (std::int64_t cycle = before(w, index); cycle < before(w, index + 1); ++cycle)
        add_cycle(round, index, w, cycle);
    }
    return round;
  }
  /// Largest number of rounds between two cycles of a worker.
  [[nodiscard]] std::int64_t reach() const {
    std::int64_t reach = 1;
    for (const Pace& pace : paces_) {
      if (pace.cycles > 1)
        reach =
            std::max(reach, static_cast<std::int64_t>(static_cast<double>(rounds_) / pace.cycles_of_run) + 1);
    }
    return reach;
  }

 private:
  // Cycles of worker w before the round: those that begin before its time of the run, so that the server,
  // which goes from round to round with the fastest worker, is never behind. Those that the plan has in
  // addition are in the last round. A worker with as many cycles as rounds has at least one in each, so that
  // no round is empty.
  [[nodiscard]] std::int64_t before(std::size_t w, std::int64_t index) const {
    const Pace& pace = paces_[w];
    if (index >= rounds_) return pace.cycles;
    const double begun = std::ceil(static_cast<double>(index) * pace.cycles_of_run /
                                   static_cast<double>(rounds_) * (1 - 1e-6));
    const std::int64_t of_later = pace.cycles >= rounds_ ? rounds_ - index : 0;
    return std::min(pace.cycles - of_later, static_cast<std::int64_t>(begun));
  }
  // The round of a cycle is the last one before which at most `cycle` cycles are done.
  [[nodiscard]] std::int64_t round_of(std::size_t w, std::int64_t cycle) const {
    const double at = static_cast<double>(cycle) * static_cast<double>(rounds_) / paces_[w].cycles_of_run;
    auto index = static_cast<std::int64_t>(std::min(at, static_cast<double>(rounds_ - 1)));
    while (before(w, index + 1) <= cycle) ++index;
    while (before(w, index) > cycle) --index;
    return index;
  }
  // Cycles have four operations; those of a worker follow each other, those of worker 0 come first.
  [[nodiscard]] OpId first_op(std::size_t w, std::int64_t index, std::int64_t cycle) const {
    std::int64_t earlier = cycle - before(w, index);
    for (std::size_t other = 0; other < w; ++other)
      earlier += before(other, index + 1) - before(other, index);
    return static_cast<OpId>(kOpsPerCycle * earlier);
  }

  void add_cycle(RoundPlan& round, std::int64_t index, std::size_t w, std::int64_t cycle) const {
    const auto worker = static_cast<NodeId>(w);
    const auto first = static_cast<OpId>(round.ops.size());
    Op steps{"local steps", Compute{Work::whole_step, {worker}, paces_[w].local_steps, 1}, {}};
    if (cycle > 0) {
      const std::int64_t previous = round_of(w, cycle - 1);
      const OpId received = first_op(w, previous, cycle - 1) + kOpsPerCycle - 1;
      if (previous == index)
        steps.after = {received};
      else
        steps.after_earlier = {{received, index - previous}};
    }
    round.ops.push_back(std::move(steps));
    // These operations are detached because of the server: it accepts the next upload of a fast worker while
    // it waits for a slow one.
    const auto add = [&](Op op) {
      op.detached = true;
      round.ops.push_back(std::move(op));
    };
    const auto transfer = [](Exchange exchange, NodeId from, NodeId to) {
      exchange.nodes = {from, to};
      return Transfer{Pattern::point_to_point, Collective::direct, {std::move(exchange)}};
    };
    add({"pseudo-gradient to the server", transfer(up_, worker, server_), {first}});
    add({"outer step of the server", Compute{Work::outer_step, {server_}, 1, 1}, {first + 1}});
    add({"model to the worker", transfer(down_, server_, worker), {first + 2}});
  }

  static constexpr OpId kOpsPerCycle = 4;
  std::vector<Pace> paces_;
  NodeId server_;
  std::int64_t rounds_;
  Exchange up_, down_;
};

// Between two updates of a worker, the server applies those of the others.
std::string staleness_note(const Scenario& scenario, const std::vector<Pace>& paces) {
  std::int64_t all = 0;
  std::size_t slowest = 0, fastest = 0;
  for (std::size_t w = 0; w < paces.size(); ++w) {
    all += paces[w].cycles;
    if (paces[w].local_steps > 0 && paces[w].cycles < paces[slowest].cycles) slowest = w;
    if (paces[w].cycles > paces[fastest].cycles) fastest = w;
  }
  const auto of = [&](std::size_t w) {
    const Pace& pace = paces[w];
    std::string text = scenario.platform.sites[w].name + " " + std::to_string(pace.cycles) + " updates of " +
                       std::to_string(pace.local_steps) + " local steps";
    if (pace.cycles == 0) return text;
    const double stale = static_cast<double>(all - pace.cycles) / static_cast<double>(pace.cycles);
    const std::string tenths = std::to_string(std::lround(10 * stale));
    return text + ", with " + (tenths.size() > 1 ? tenths.substr(0, tenths.size() - 1) : "0") + "." +
           tenths.back() + " updates of other sites between two of them";
  };
  return "async_diloco: sites train at their own pace, as their expected step and transfer times say; " +
         of(fastest) + "; " + of(slowest) +
         "; the server is at the first site, and its memory is not counted";
}

// Flows have averaged rates, unless the links change over time.
void average_paths(Plan& plan, const Scenario& scenario, const std::vector<Pace>& paces) {
  plan.classes[0].own_pace = scenario.platform.changes.empty();
  if (!plan.classes[0].own_pace) return;
  for (int site = 1; site < static_cast<int>(paces.size()); ++site) {
    const Pace& pace = paces[static_cast<std::size_t>(site)];
    if (pace.local_steps == 0) continue;
    plan.averaged_paths.push_back({site, 0, pace.up_bytes_per_s});
    plan.averaged_paths.push_back({0, site, pace.down_bytes_per_s});
  }
}

Plan plan(const Scenario& scenario) {
  if (scenario.strategy.staleness) return plan_in_lockstep(scenario);
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan = plan_of_rounds(scenario, local_steps);
  overlap_rounds(plan, local_steps);
  plan.classes[0].identical = false;  // a worker may have a cycle in one round and none in the next one
  const auto server = static_cast<NodeId>(plan.nodes.size());
  plan.nodes.push_back({NodeKind::server, 0, 0});
  std::vector<Pace> paces = own_paces(scenario).sites;
  // Each round has a cycle of the fastest worker, also if shares of cycles would train what the last rounds
  // do.
  Pace& fastest = *std::max_element(paces.begin(), paces.end(),
                                    [](const Pace& a, const Pace& b) { return a.cycles < b.cycles; });
  fastest.cycles = std::max(fastest.cycles, plan.rounds);
  average_paths(plan, scenario, paces);
  plan.notes.push_back(staleness_note(scenario, paces));
  const PacedRounds rounds(scenario, plan, server, std::move(paces));
  plan.classes[0].reach = rounds.reach();
  plan.round = [rounds](std::int64_t index) { return rounds.round(index); };
  return plan;
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
