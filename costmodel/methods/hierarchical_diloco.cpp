// DiLoCo with two periods: the M sites form R regions of equally many sites (`regions`; regions.hpp). After
// every K local steps, each region averages its parameters, as in hierarchical local SGD (Lin et al. 2018).
// In every G-th round (`global_period`) all sites instead average their pseudo-gradients since the last such
// round, and an outer Nesterov step follows, as in DiLoCo. Each site sends B bytes per round, as the mean
// over rounds, where S_p is the size of the parameters and S_g that of the pseudo-gradients:
//   B = (1 − 1/G) · 2(M/R−1)/(M/R) · S_p + 1/G · 2(M−1)/M · S_g
#include <algorithm>

#include "costmodel/methods/all.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/regions.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

// The same exchange within each region.
std::vector<Exchange> in_regions(const Scenario& scenario, const Exchange& whole) {
  const auto regions = static_cast<std::size_t>(scenario.strategy.regions);
  const std::vector<int> region_of = regions_of_sites(scenario.platform, scenario.strategy.regions);
  std::vector<Exchange> exchanges(whole.nodes.size() > regions ? regions : 0, {{}, whole.payloads});
  if (exchanges.empty()) return exchanges;
  for (const NodeId node : whole.nodes)
    exchanges[static_cast<std::size_t>(region_of[static_cast<std::size_t>(node)])].nodes.push_back(node);
  return exchanges;
}

Plan plan(const Scenario& scenario) {
  const std::int64_t local_steps = scenario.strategy.local_steps, period = scenario.strategy.global_period;
  Plan plan = plan_of_rounds(scenario, local_steps);
  plan.notes.push_back("hierarchical_diloco: " + regions_note(scenario.platform, scenario.strategy.regions));
  const auto is_global = [period](std::int64_t index) { return (index + 1) % period == 0; };
  classify_rounds(plan, period, [=](std::int64_t index) { return is_global(index) ? 1 : 0; });
  const Exchange parameters = full_model_exchange(scenario, plan.groups, {Content::parameter});
  const Exchange pseudo_gradients = full_model_exchange(scenario, plan.groups, {Content::pseudo_gradient});
  plan.round = [=](std::int64_t index) {
    const std::int64_t steps = steps_of_round(plan, local_steps, index);
    if (is_global(index))
      return local_round(scenario, steps, "average pseudo-gradients of all regions", pseudo_gradients,
                         OuterOptimizer::nesterov);
    RoundPlan round;
    round.ops.push_back(compute_op(scenario, "local steps", Work::whole_step, steps, {}));
    if (const auto exchanges = in_regions(scenario, parameters); !exchanges.empty()) {
      Op average = all_reduce_op(scenario, "average parameters in regions", exchanges, {0});
      Transfer& transfer = std::get<Transfer>(average.what);
      if (transfer.collective == Collective::hierarchical) transfer.collective = Collective::ring;
      round.ops.push_back(std::move(average));
    }
    return round;
  };
  return plan;
}

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = rounds_of(axes, fixed, axes.local_steps);
  const double global = std::floor(summary.rounds / fixed.global_period) / summary.rounds;  // share of rounds
  const double of_region = axes.sites / fixed.collective.regions;
  summary.outer_steps_per_round = global;
  const auto add = [&](double share, double sites, double bytes, bool everywhere) {
    Axes members = axes;
    members.sites = sites;
    Fixed with = fixed;
    if (!everywhere) with.sparse_payloads = false;
    if (!everywhere && with.collective == Collective::hierarchical) with.collective = Collective::ring;
    const double factor = share * averaging_factor(with, sites) * bytes;
    summary.sent.dense += factor * fixed.dense_elements;
    summary.sent.expert_sync += factor * fixed.expert_elements;
    Stage stage = averaging_stage(members, with, bytes * (fixed.dense_elements + fixed.expert_elements));
    stage.times_per_round = share;
    if (!everywhere) stage.among = Among::region;
    summary.add(stage);
  };
  add(global, axes.sites, axes.bytes_per_element, true);
  add(1.0 - global, of_region, bytes_per_parameter(axes, fixed), false);
  return summary;
}

void check_regions(const Scenario& scenario) {
  if (scenario.strategy.secure_aggregation)
    throw InputError("strategy.secure_aggregation", "true",
                     "false with hierarchical_diloco, because its sums are among different sites in "
                     "different rounds",
                     "false");
  const int sites = scenario.sites(), regions = scenario.strategy.regions;
  if (sites % regions == 0) return;
  int nearest = std::clamp(regions, 1, sites);
  while (sites % nearest != 0) --nearest;
  throw InputError("strategy.regions", std::to_string(regions),
                   "regions that divide the " + std::to_string(sites) + " sites into equal groups",
                   std::to_string(nearest));
}

}  // namespace

Method hierarchical_diloco() {
  Method method;
  method.name = "hierarchical_diloco";
  method.summary =
      "Every K steps, the sites of each region average their parameters. In every global_period-th round, "
      "all sites average pseudo-gradients, and an outer Nesterov step follows.";
  method.axes = {"local_steps",   "global_period",   "collective",
                 "payload_dtype", "parameter_dtype", "compression"};
  method.source =
      "Douillard et al. 2023, DiLoCo (arXiv 2311.08105); Lin et al. 2018, hierarchical local SGD (arXiv "
      "1808.07217)";
  method.outer_bytes_per_parameter = 8;  // fp32 anchor and momentum
  method.averages_everything = false;    // regions differ between two global rounds
  method.not_modelled = "an outer optimiser inside regions; regions of unequal size";
  method.assumptions =
      "regions are those of the platform, or consecutive sites; a global round replaces the regional average";
  method.check = check_regions;
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
