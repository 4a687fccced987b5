// Tests that the closed form equals the simulation, or says that it is an approximation, and why.
#include "costmodel/formula/approximations.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>
#include <string>

#include "costmodel/compose/check.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/links/links.hpp"
#include "costmodel/formula/outcome.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/flops.hpp"
#include "platforms/each_path.hpp"
#include "platforms/support/input_error.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/draws.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using costmodel::Scenario;
using tests::Draws;

namespace {

/// Counts of a router that prefers some experts, others in each layer.
costmodel::RoutingCounts drawn_counts(const Scenario& scenario, Draws& draws) {
  costmodel::RoutingCounts counts =
      costmodel::make_routing_counts(static_cast<int>(costmodel::moe_layers(scenario.model)),
                                     static_cast<int>(scenario.model.experts), scenario.sites());
  for (auto& count : counts.counts) count = 1 + draws.below(50);
  return counts;
}

/// Measured steps whose passes and updates take other shares of the time than by FLOPs. A micro-batch is a
/// sequence.
costmodel::ProfiledCompute drawn_profile(const Scenario& scenario, Draws& draws) {
  costmodel::ProfiledCompute compute;
  compute.profile.model = scenario.model;
  compute.micro_batch_sequences = 1;
  for (int experts = 1; experts <= scenario.model.experts; ++experts) {
    for (const bool skip_token : {false, true})
      compute.profile.points.push_back(
          {1,
           experts,
           skip_token,
           0,
           {{draws.between(0.1, 1), draws.between(0.1, 1), draws.between(0, 0.5)}},
           0.02 * experts});
  }
  return compute;
}

/// Sites, batch, step times, steps of a round and of the run, all axes of the method, techniques, extra
/// traffic and links are drawn.
Scenario drawn_scenario(const costmodel::Method& method, Draws& draws) {
  const int sites = 2 + draws.below(7);
  Scenario scenario = tests::every_axis_scenario(method.name, sites);
  costmodel::Strategy& strategy = scenario.strategy;
  scenario.model.layers = 6;
  strategy.local_steps = 1 + draws.below(8);
  strategy.fragments = 1 + draws.below(6);
  strategy.overlap_steps = draws.below(3);
  strategy.layerwise = draws.chance(0.2);
  strategy.collective = static_cast<costmodel::Collective>(draws.chance(0.5) ? 0 : draws.below(4));
  if (strategy.collective == costmodel::Collective::hierarchical || strategy.regions > 1)
    strategy.regions = sites % 2 == 0 && draws.chance(0.7) ? 2 : sites;
  strategy.fragment_pattern = static_cast<costmodel::FragmentPattern>(draws.below(3));
  strategy.placement = draws.chance(0.4) ? costmodel::PlacementKind::random : costmodel::PlacementKind::fixed;
  strategy.reshuffle_rounds = 1 + draws.below(3);
  strategy.global_period = 1 + draws.below(3);
  strategy.moment1_period = 1 + draws.below(3);
  strategy.moment2_period = 1 + draws.below(4);
  strategy.gossip_peers = 1 + draws.below(2);
  strategy.micro_batches = 1 + draws.below(4);
  strategy.stage_sites = 1 + draws.below(2);
  strategy.sharding = static_cast<costmodel::Sharding>(draws.below(4));
  strategy.schedule = static_cast<costmodel::PipelineSchedule>(draws.below(2));
  strategy.overlap_dispatch = draws.chance(0.3);
  if (method.residency == costmodel::Residency::experts_sharded) {
    strategy.router = static_cast<costmodel::RouterModel>(draws.below(3));
    if (draws.chance(0.3)) strategy.routing_counts = drawn_counts(scenario, draws);
    if (costmodel::has_axis(method, "capacity_factor") && draws.chance(0.3))
      strategy.capacity_factor = draws.between(0.5, 2);
    strategy.max_sites_per_token = draws.below(3);
  }
  scenario.gpus.activation_checkpointing = draws.chance(0.2);
  strategy.outer_optimizer = static_cast<costmodel::OuterOptimizer>(draws.chance(0.5) ? 0 : draws.below(5));
  strategy.secure_aggregation = draws.chance(0.2);
  if (draws.chance(0.05)) {
    scenario.traffic.data_site = 0;
    scenario.traffic.data_bytes_per_token = draws.between(1, 1e5);
  }
  if (draws.chance(0.05)) {
    scenario.traffic.checkpoint_site = 0;
    scenario.traffic.checkpoint_rounds = 1 + draws.below(3);
  }
  if (draws.chance(0.05)) {
    scenario.traffic.rejoin_site = 1;
    scenario.traffic.rejoin_rounds = 1 + draws.below(3);
  }
  if (method.partial_experts) strategy.expert_overlap = 1 + draws.below(sites);
  scenario.workload.global_batch_sequences = sites * (1 + draws.below(3)) + draws.below(sites);
  const int steps =
      draws.chance(0.5) ? 1 + draws.below(20) : static_cast<int>(strategy.local_steps) * (1 + draws.below(4));
  scenario.workload.tokens =
      steps * scenario.workload.global_batch_sequences * scenario.model.sequence_length;
  const auto parameters = static_cast<double>(costmodel::count_parameters(scenario.model).total());
  if (draws.chance(0.7)) {  // a step of a second for a sequence of each site
    const double flops = costmodel::full_replica_flops(scenario.model).total() *
                         static_cast<double>(scenario.model.sequence_length);
    scenario.compute = costmodel::AssumedDevice{flops / 0.4, 0.4, 0};
  }
  if (draws.chance(0.3)) scenario.compute = drawn_profile(scenario, draws);
  if (draws.chance(0.5))  // outer steps take up to a few seconds
    scenario.gpus.memory_bytes_per_s = 10 * parameters / draws.between(0.01, 1);
  const double bytes_per_s = 2 * parameters / draws.between(0.1, 9);
  const double uplink_share = draws.chance(0.3) ? draws.between(0.3, 3) : 1;
  scenario.platform =
      platforms::uniform(sites, uplink_share * bytes_per_s, bytes_per_s, draws.between(0, 0.1));
  if (draws.chance(0.2)) {
    for (platforms::Site& site : scenario.platform.sites)
      site.uplink_bytes_per_s = bytes_per_s * draws.between(0.3, 1);
  }
  if (draws.chance(0.2))
    tests::change_each_path(scenario.platform,
                            [&](platforms::Path& path) { path.latency_s = draws.between(0, 0.1); });
  if (draws.chance(0.2)) scenario.platform.sites.back().compute_factor = draws.between(1, 2);
  return scenario;
}

/// What was drawn, to find out why a case fails.
std::string described(const Scenario& scenario, double steps) {
  const costmodel::Strategy& s = scenario.strategy;
  const platforms::Platform& p = scenario.platform;
  std::ostringstream text;
  text << "sites " << scenario.sites() << ", batch " << scenario.workload.global_batch_sequences << ", steps "
       << steps << ", K " << s.local_steps << ", O_e " << s.expert_overlap << ", fragments " << s.fragments
       << " pattern " << int(s.fragment_pattern) << ", τ " << s.overlap_steps << ", layerwise " << s.layerwise
       << ", collective " << int(s.collective) << " regions " << s.regions << ", placement "
       << int(s.placement) << " T " << s.reshuffle_rounds << ", periods " << s.global_period << ' '
       << s.moment1_period << ' ' << s.moment2_period << ", peers " << s.gossip_peers << ", micro-batches "
       << s.micro_batches << ", stage sites " << s.stage_sites << ", sharding " << int(s.sharding)
       << ", schedule " << int(s.schedule) << ", dispatch " << s.overlap_dispatch << ", router "
       << int(s.router) << " counts " << s.routing_counts.counts.size() << " capacity " << s.capacity_factor
       << " sites per token " << s.max_sites_per_token << ", again " << scenario.gpus.activation_checkpointing
       << ", outer " << int(s.outer_optimizer) << ", secure " << s.secure_aggregation << ", given "
       << std::holds_alternative<costmodel::GivenStepTime>(scenario.compute) << ", memory "
       << scenario.gpus.memory_bytes_per_s << ", links differ " << platforms::links_differ(p) << ", up "
       << p.sites[0].uplink_bytes_per_s << ", down " << p.sites[0].downlink_bytes_per_s << ", latency "
       << p.path(0, 1).latency_s << ", last site " << p.sites.back().compute_factor;
  return text.str();
}

/// Largest relative error of a closed form that does not say that it is an approximation.
double tolerance_of(const Scenario& scenario) {
  // Stars and direct exchanges between ports that differ are within 2 % (unequal_sites_test.cpp).
  if (platforms::links_differ(scenario.platform)) return 0.02;
  // Sites with unequal steps have unequal outer steps, which may take up to 1 % of a round.
  if (costmodel::steps_unequal(
          costmodel::limits_of(scenario),
          static_cast<double>(scenario.workload.global_batch_sequences) / scenario.sites()))
    return 0.02;
  return 1e-6;  // payloads are whole bytes, and norms are not in equal parts
}

}  // namespace

TEST_CASE("every method on drawn scenarios: the closed form equals the simulation or says that it does not") {
  Draws draws(811);
  const int cases = 60;
  int exact = 0, approximate = 0, wrong = 0;
  for (const costmodel::Method& method : costmodel::methods()) {
    CAPTURE(method.name);
    for (int i = 0; i < cases; ++i) {
      CAPTURE(i);
      const Scenario scenario = drawn_scenario(method, draws);
      try {
        costmodel::check(scenario);
      } catch (const InputError&) {
        continue;  // not every method allows every combination
      }
      const costmodel::Resolved resolved = costmodel::resolve(scenario);
      const bool is_exact = costmodel::approximations(scenario, resolved).empty();
      const costmodel::RunReport formula = costmodel::closed_form(scenario);
      const double formula_s = formula.wall_clock_s;
      const double simulated_s =
          sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report.wall_clock_s;
      const double error = std::abs(formula_s / simulated_s - 1);
      CAPTURE(error);
      CAPTURE(described(scenario, resolved.plan.steps));
      const double tolerance = tolerance_of(scenario);
      if (is_exact) CHECK(error < tolerance);
      ++(is_exact ? exact : approximate);
      wrong += error > 0.02 ? 1 : 0;
      // A sweep says the same.
      const costmodel::Outcome row = costmodel::outcome_of(resolved);
      CHECK(costmodel::approximates(resolved) != is_exact);
      CHECK(row.wall_clock_s == doctest::Approx(formula_s).epsilon(1e-9));
      CHECK(row.compute_utilization == doctest::Approx(formula.compute_utilization).epsilon(1e-9));
    }
  }
  CHECK(exact > 50);  // else nothing was tested
  CHECK(approximate > 20);
  CHECK(wrong > 10);
}

TEST_CASE(
    "an update that takes longest at another site than a step: a short run says so, a long one has it once") {
  Scenario scenario = tests::ideal_scenario("ddp", 4);
  scenario.strategy.fragments = 1;
  costmodel::ProfiledCompute compute;
  compute.profile.model = scenario.model;
  compute.profile.points = {{1, scenario.model.experts, false, 0, {{0.1, 0.2, 0.5}}}};
  compute.micro_batch_sequences = 1;
  scenario.compute = compute;
  // The last site has one sequence instead of two. It takes 1.04 s instead of 1.1 s, and updates for 0.65 s
  // instead of 0.5 s.
  scenario.workload.global_batch_sequences = 7;
  scenario.platform.sites.back().compute_factor = 1.3;
  const auto after = [&](int steps) {
    scenario.workload.tokens = steps * 7 * scenario.model.sequence_length;
    return sim::simulate_scenario(scenario, {.rounds = {}, .all_rounds = true}).report.wall_clock_s -
           costmodel::closed_form(scenario).wall_clock_s;
  };
  for (const int steps : {1, 5, 50}) {
    CAPTURE(steps);
    CHECK(after(steps) == doctest::Approx(0.15).epsilon(1e-3));
    // The update of 0.5 s is less than 1 % of a run of 50 steps.
    CHECK(!costmodel::approximates(costmodel::resolve(scenario)) == (steps == 50));
  }
}

TEST_CASE("real hosts: the closed form knows measured connections, and the peers of recursive halving") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.network = costmodel::linux_host();
  scenario.model.d_model = 1680;  // 46 MB
  const auto wall_clocks = [&] {
    return std::pair(costmodel::closed_form(scenario).wall_clock_s,
                     sim::simulate_scenario(scenario).report.wall_clock_s);
  };
  // The rate of one connection was measured over 200 ms, which a send buffer of 4 MiB would not reach.
  scenario.platform = platforms::uniform(2, 1.25e8, 1.25e8, 0.1);
  scenario.platform.paths.change_all([](platforms::Path& path) { path.connection_bytes_per_s = 2.5e7; });
  const auto [formula_s, simulated_s] = wall_clocks();
  CHECK(formula_s == doctest::Approx(simulated_s).epsilon(0.05));
  // Each step of recursive halving has another peer, whose connection has been idle.
  scenario.workload.global_batch_sequences = 16;
  scenario.workload.tokens *= 8;
  scenario.platform = platforms::uniform(16, 6e7, 6e7, 0.025);
  scenario.strategy.expert_overlap = 16;
  scenario.strategy.collective = costmodel::Collective::recursive;
  const auto [halving_s, by_simulation_s] = wall_clocks();
  CHECK(halving_s == doctest::Approx(by_simulation_s).epsilon(0.1));
}

TEST_CASE(
    "partial replicas: while one of the dense parameters and the experts waits for a latency, the other "
    "sends") {
  using costmodel::PlacementKind;
  for (const auto placement : {PlacementKind::fixed, PlacementKind::rotated, PlacementKind::random}) {
    for (const int overlap : {2, 3, 4, 8}) {
      for (const double latency_s : {0.0, 0.005, 0.05}) {
        CAPTURE(static_cast<int>(placement));
        CAPTURE(overlap);
        CAPTURE(latency_s);
        costmodel::Scenario scenario = tests::ideal_scenario("fomoe", 8, overlap);
        scenario.strategy.placement = placement;
        scenario.model.d_expert = 3200;  // as many bytes as the dense parameters
        scenario.model.experts = 16;
        scenario.platform = platforms::uniform(8, 1e8, 1e8, latency_s);
        const double simulated_s = sim::simulate_scenario(scenario).report.wall_clock_s;
        const costmodel::Resolved resolved = costmodel::resolve(scenario);
        const bool says = !costmodel::approximations(scenario, resolved).empty();
        CHECK(costmodel::approximates(resolved) == says);
        // In blocks, each site has one flow of both, and all sites do the same.
        const bool partial = 1 < overlap && overlap < 8;
        const bool blocks = placement == PlacementKind::fixed && overlap != 3;
        if (!partial || blocks) CHECK_FALSE(says);
        if (partial && placement == PlacementKind::random) CHECK(says);
        // Drawn pairs differ in size at every latency. Consecutive owners have two flows, one of which ends
        // first.
        const double tolerance = !says ? 1e-9 : placement == PlacementKind::random ? 0.08 : 0.01;
        CHECK(resolved.wall_clock_s() == doctest::Approx(simulated_s).epsilon(tolerance));
        if (blocks && partial && latency_s > 0) {  // both one after the other would take longer
          costmodel::Resolved in_turn = resolved;
          for (costmodel::Stage& stage : in_turn.plan.stages) stage.beside = {};
          CHECK(costmodel::stage_s(in_turn.plan.stages.front(), resolved.links.sets) >
                1.0001 * costmodel::stage_s(resolved.plan.stages.front(), resolved.links.sets));
        }
      }
    }
  }
}

TEST_CASE("a store that limits sites with unequal steps: fast ones use it while others compute") {
  costmodel::Scenario scenario = tests::through_store(tests::ideal_scenario("diloco", 4), true);
  scenario.workload.global_batch_sequences = 5;
  scenario.workload.tokens = 60 * 5 * scenario.model.sequence_length;
  scenario.compute = costmodel::AssumedDevice{1e12, 0.5};
  scenario.peak_flops = 1e12;
  CHECK_FALSE(costmodel::approximates(costmodel::resolve(scenario)));
  scenario.platform.store->downlink_bytes_per_s = 1e8;
  CHECK(costmodel::approximates(costmodel::resolve(scenario)));
}
