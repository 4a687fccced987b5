#include "costmodel/methods/shared/paced_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/compute/own_pace.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/method.hpp"

namespace fomoe::costmodel {

namespace {

// Rounds in which each worker has its own number of cycles.
class PacedRounds {
 public:
  PacedRounds(const Scenario& scenario, const Plan& plan, NodeId server, std::vector<Pace> paces)
      : paces_(std::move(paces)),
        server_(server),
        rounds_(plan.rounds),
        fragments_(fragments_of_paces(scenario.strategy)),
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
  /// Largest number of rounds between a cycle and those that it waits for.
  [[nodiscard]] std::int64_t reach() const {
    std::int64_t reach = 1;
    for (const Pace& pace : paces_) {
      if (pace.cycles > 1)
        reach = std::max(
            reach,
            static_cast<std::int64_t>(static_cast<double>(rounds_ * fragments_) / pace.cycles_of_run) + 1);
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
    // Waits for the operation `offset` of an earlier cycle.
    const auto wait_for = [&](Op& op, std::int64_t earlier, OpId offset) {
      if (earlier < 0) return;
      const std::int64_t then = round_of(w, earlier);
      const OpId id = first_op(w, then, earlier) + offset;
      if (then == index)
        op.after.push_back(id);
      else
        op.after_earlier.push_back({id, index - then});
    };
    const auto transfer = [&](Exchange exchange, NodeId from, NodeId to) {
      exchange.nodes = {from, to};
      for (Payload& payload : exchange.payloads) take_part(payload, static_cast<int>(cycle % fragments_));
      return Transfer{Pattern::point_to_point, Collective::direct, {std::move(exchange)}};
    };
    std::vector<Op> ops = {{"local steps", Compute{Work::whole_step, {worker}, paces_[w].local_steps, 1}, {}},
                           {"pseudo-gradient to the server", transfer(up_, worker, server_), {first}},
                           {"outer step of the server",
                            Compute{Work::outer_step, {server_}, 1, 1.0 / static_cast<double>(fragments_)},
                            {first + 1}},
                           {"model to the worker", transfer(down_, server_, worker), {first + 2}}};
    wait_for(ops[kSteps], cycle - fragments_, kDown);
    for (const OpId one : {kSteps, kUp, kDown}) {  // a worker steps, sends and receives one after another
      if (fragments_ > 1) wait_for(ops[static_cast<std::size_t>(one)], cycle - 1, one);
    }
    // These operations are detached because of the server: it accepts the next upload of a fast worker while
    // it waits for a slow one.
    for (const OpId one : {kUp, kApplied, kDown}) ops[static_cast<std::size_t>(one)].detached = true;
    std::move(ops.begin(), ops.end(), std::back_inserter(round.ops));
  }

  void take_part(Payload& payload, int fragment) const {
    if (fragments_ == 1) return;
    payload.chunk = fragment;
    payload.chunks = static_cast<int>(fragments_);
    payload.elements = chunk_elements(payload.elements, payload.chunks, fragment);
  }

  static constexpr OpId kSteps = 0, kUp = 1, kApplied = 2, kDown = 3, kOpsPerCycle = 4;
  std::vector<Pace> paces_;
  NodeId server_;
  std::int64_t rounds_, fragments_;
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
  return scenario.strategy.method->name +
         ": sites train at their own pace, as their expected step and transfer times say; " + of(fastest) +
         "; " + of(slowest) + "; the server is at the first site, and its memory is not counted";
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

}  // namespace

Plan plan_of_paces(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps;
  Plan plan = plan_of_rounds(scenario, local_steps);
  overlap_rounds(plan, local_steps);
  plan.classes[0].identical = false;  // a worker may have a cycle in one round and none in the next one
  const auto server = static_cast<NodeId>(plan.nodes.size());
  plan.nodes.push_back({NodeKind::server, 0, 0});
  std::vector<Pace> paces = own_paces(scenario).sites;
  // Each round has cycles of the fastest worker, also if shares of cycles would train what the last rounds
  // do.
  Pace& fastest = *std::max_element(paces.begin(), paces.end(),
                                    [](const Pace& a, const Pace& b) { return a.cycles < b.cycles; });
  fastest.cycles = std::max(fastest.cycles, plan.rounds * fragments_of_paces(scenario.strategy));
  average_paths(plan, scenario, paces);
  plan.notes.push_back(staleness_note(scenario, paces));
  if (!plan.averaged_paths.empty() && scenario.sites() > 2)
    plan.notes.push_back(
        scenario.strategy.method->name +
        ": transfers have the rates that other workers leave on average, over all phases of "
        "their cycles; where all steps take equally long, workers may stay in phase, and the "
        "run takes longer");
  const PacedRounds rounds(scenario, plan, server, std::move(paces));
  plan.classes[0].reach = rounds.reach();
  plan.round = [rounds](std::int64_t index) { return rounds.round(index); };
  return plan;
}

}  // namespace fomoe::costmodel
