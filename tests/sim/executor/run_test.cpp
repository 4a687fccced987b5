// Tests simulations of whole scenarios: random placement, the extrapolation from few identical rounds,
// conservation of bytes, and monotonicity.
#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "sim/executor/simulate.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"
#include "tests/sim/executor/simulated.hpp"
#include "tests/sim/transfers.hpp"

using namespace fomoe;
using costmodel::Collective;
using costmodel::PlacementKind;
using costmodel::RunReport;
using tests::simulated;

namespace {

// A scenario with random placement in which experts dominate the payload.
costmodel::Scenario random_experts(int sites, int overlap, int layers) {
  costmodel::Scenario scenario = tests::ideal_scenario("fomoe", sites, overlap);
  scenario.strategy.placement = PlacementKind::random;
  scenario.model.d_model = 840;
  scenario.model.d_expert = 6720;
  scenario.model.layers = layers;
  scenario.model.experts = 16;
  return scenario;
}

// Seconds of one step of the ring: S/M ÷ B.
double scenario_chunk_s(const costmodel::Scenario& scenario) {
  const double payload = 2.0 * static_cast<double>(costmodel::count_parameters(scenario.model).total());
  return payload / scenario.sites() / scenario.platform.sites[0].uplink_bytes_per_s;
}

// The timeline of round 0 of the plan without the migration of experts.
costmodel::Timeline synchronisation_only(const costmodel::Scenario& scenario, bool bundle) {
  costmodel::Plan plan = costmodel::find_method("fomoe")->plan(scenario);
  costmodel::RoundPlan round = plan.round(0);
  REQUIRE(round.ops.back().name == "migrate experts");
  round.ops.pop_back();
  plan.round = [round](std::int64_t) { return round; };
  return sim::simulate(plan, {0}, scenario.platform, [](auto&&...) { return 0.0; }, {bundle});
}

}  // namespace

TEST_CASE("random placement, unbundled: the synchronisation takes (R_M·S_dense + R_Oe·S_local)/B exactly") {
  for (const int sites : {4, 8}) {
    for (int overlap = 1; overlap < sites; overlap *= 2) {
      for (const Collective collective : {Collective::ring, Collective::direct}) {
        costmodel::Scenario scenario = random_experts(sites, overlap, 4);
        scenario.strategy.collective = collective;
        const auto sent = costmodel::summarise(scenario).sent;
        const double expected = (sent.dense + sent.expert_sync) / 1e9;
        CAPTURE(sites);
        CAPTURE(overlap);
        CHECK(std::abs(synchronisation_only(scenario, false).round_end_s[0] - expected) <= 1e-9 * expected);
      }
    }
  }
}

TEST_CASE(
    "random placement, bundled: never faster, and within the bound that sim/executor/lowering.hpp states") {
  const auto excess = [](int layers, int overlap) {
    const costmodel::Scenario scenario = random_experts(8, overlap, layers);
    return synchronisation_only(scenario, true).round_end_s[0] /
               synchronisation_only(scenario, false).round_end_s[0] -
           1;
  };
  for (const int overlap : {2, 4}) {
    CHECK(excess(2, overlap) >= -1e-9);
    CHECK(excess(2, overlap) <= 0.16);
    CHECK(excess(16, overlap) >= -1e-9);
    CHECK(excess(16, overlap) <= 0.04);
  }
}

TEST_CASE("migration takes at least the realised busiest port ÷ bandwidth") {
  costmodel::Scenario scenario = random_experts(8, 2, 4);
  const costmodel::Plan plan = costmodel::find_method("fomoe")->plan(scenario);
  const auto timeline = sim::simulate(plan, {0}, scenario.platform, [](auto&&...) { return 0.0; });
  const costmodel::RoundPlan round = plan.round(0);
  const auto& migration = std::get<costmodel::Transfer>(round.ops.back().what);
  std::vector<double> sent(8, 0), received(8, 0);
  for (const auto& exchange : migration.exchanges) {
    sent[static_cast<std::size_t>(exchange.nodes[0])] += static_cast<double>(exchange.bytes());
    received[static_cast<std::size_t>(exchange.nodes[1])] += static_cast<double>(exchange.bytes());
  }
  const double busiest = std::max(*std::max_element(sent.begin(), sent.end()),
                                  *std::max_element(received.begin(), received.end()));
  double start_s = 1e300, end_s = 0;
  for (const auto& interval : timeline.intervals) {
    if (interval.op != static_cast<int>(round.ops.size()) - 1) continue;
    start_s = std::min(start_s, interval.start_s);
    end_s = std::max(end_s, interval.end_s);
  }
  REQUIRE(busiest > 0);
  CHECK(end_s - start_s >= busiest / 1e9 * (1 - 1e-9));
}

TEST_CASE("bytes: links = plan, for every method") {
  for (const costmodel::Method& method : costmodel::methods()) {
    for (const int overlap : {1, 2, 8}) {
      const costmodel::Scenario scenario = tests::every_axis_scenario(std::string(method.name), 8, overlap);
      const costmodel::Plan plan = method.plan(scenario);
      const auto timeline = sim::simulate(plan, {0}, scenario.platform, [](auto&&...) { return 0.0; });
      double crossed = 0;
      for (const auto& [pair, bytes] : timeline.sent.bytes) {
        const auto site = [&](int node) { return plan.nodes[static_cast<std::size_t>(node)].site; };
        if (site(pair.first) != site(pair.second)) crossed += bytes;
      }
      CAPTURE(method.name);
      CHECK(std::abs(crossed - 8 * tests::sent_in_round(plan, 8, 0).total()) <= 1e-12 * crossed);
    }
  }
}

TEST_CASE("the shortcut over identical rounds gives what all rounds give, on unequal sites too") {
  costmodel::Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  scenario.platform.sites[1].uplink_bytes_per_s = 3e8;
  scenario.platform.sites[2].downlink_bytes_per_s = 5e8;
  scenario.platform.set_latency(0, 3, 0.2);
  scenario.strategy.local_steps = 7;  // 60 steps: 8 rounds of 7 and one of 4
  const RunReport some = simulated(scenario);
  const RunReport all = simulated(scenario, {.rounds = {}, .all_rounds = true, .bundle = true});
  CHECK(std::abs(some.wall_clock_s - all.wall_clock_s) <= 1e-9 * all.wall_clock_s);
  CHECK(all.round.count == 9);
  CHECK(std::abs(some.bytes_per_token - all.bytes_per_token) <= 1e-12 * all.bytes_per_token);
}

TEST_CASE("the shortcut holds where the first round differs from the steady state") {
  // With random port rates, sites end the exchange at different times, and carry their lead into the next
  // round.
  const bool ok = rc::check([] {
    const int sites = *rc::gen::inRange(3, 6);
    costmodel::Scenario scenario =
        tests::ideal_scenario(*rc::gen::element<std::string>("diloco", "ddp"), sites);
    scenario.strategy.collective = *rc::gen::element(Collective::ring, Collective::direct);
    scenario.workload.global_batch_sequences = sites + 1;  // site 0 computes twice as long
    scenario.workload.tokens = 60LL * (sites + 1) * scenario.model.sequence_length;
    scenario.compute = costmodel::AssumedDevice{1e10 * *rc::gen::inRange(1, 500), 1.0};
    for (auto& site : scenario.platform.sites) {
      site.uplink_bytes_per_s = 1e8 * *rc::gen::inRange(1, 50);
      site.downlink_bytes_per_s = 1e8 * *rc::gen::inRange(1, 50);
    }
    const RunReport some = simulated(scenario);
    const RunReport all = simulated(scenario, {.rounds = {}, .all_rounds = true, .bundle = true});
    RC_ASSERT(std::abs(some.wall_clock_s - all.wall_clock_s) <= 1e-9 * all.wall_clock_s);
  });
  CHECK(ok);
}

TEST_CASE("where windows grow, a shorter last round does not start with new connections") {
  costmodel::Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.platform.paths.change_all([&](platforms::Path& path) { path.latency_s = 0.1; });
  scenario.network.initial_window_bytes = 14480;
  scenario.strategy.local_steps = 7;  // 60 steps: 8 rounds of 7 and one of 4
  const RunReport all = simulated(scenario, {.rounds = {}, .all_rounds = true, .bundle = true});
  sim::RunOptions usual;
  usual.most_flows = 100'000'000;
  CHECK(simulated(scenario, usual).wall_clock_s == doctest::Approx(all.wall_clock_s).epsilon(0.01));
  CHECK(simulated(scenario, {.rounds = 3}).wall_clock_s > 1.01 * all.wall_clock_s);
}

TEST_CASE("a slow site makes the others wait: compute + exposed + idle = duration at every site") {
  costmodel::Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.workload.global_batch_sequences = 6;  // 2, 2, 1, 1 sequences
  scenario.workload.tokens = 60 * 6 * 10;
  scenario.compute = costmodel::AssumedDevice{1e12, 0.5};
  const RunReport report = simulated(scenario);
  CHECK(report.sites[0].compute_s == doctest::Approx(2 * report.sites[2].compute_s));
  // Sites 2 and 3 end their computation earlier by compute_s. Site 2 sends its first chunk to site 3 at once,
  // and then waits.
  const double chunk_s = scenario_chunk_s(scenario);
  CHECK(report.sites[0].idle_s == doctest::Approx(0).epsilon(1e-9));
  CHECK(report.sites[2].idle_s == doctest::Approx(report.sites[2].compute_s - chunk_s));
  for (const auto& site : report.sites) {
    CHECK(site.compute_s + site.exposed_communication_s + site.idle_s ==
          doctest::Approx(report.round.duration_s).epsilon(1e-12));
  }
}

TEST_CASE("same seed, same answer; another seed, another placement") {
  costmodel::Scenario scenario = random_experts(4, 1, 2);
  const RunReport a = simulated(scenario), b = simulated(scenario);
  CHECK(a.wall_clock_s == b.wall_clock_s);
  scenario.seed = 43;
  CHECK(simulated(scenario).wall_clock_s != a.wall_clock_s);
}

TEST_CASE(
    "more bandwidth never lengthens a run, more latency never shortens one; wall clock within its bounds") {
  const bool ok = rc::check([] {
    const int sites = *rc::gen::inRange(2, 6);
    const auto& method = *rc::gen::elementOf(costmodel::methods());
    costmodel::Scenario scenario =
        tests::ideal_scenario(std::string(method.name), sites, *rc::gen::element(1, sites));
    scenario.model.d_model = 8 * *rc::gen::inRange(1, 100);
    scenario.model.experts = 2 * sites;
    scenario.strategy.local_steps = *rc::gen::inRange(1, 20);
    scenario.strategy.collective = *rc::gen::element(Collective::ring, Collective::direct);
    scenario.strategy.placement = *rc::gen::element(PlacementKind::fixed, PlacementKind::random);
    // Without a bound, the links decide how often each site exchanges with the server.
    scenario.strategy.staleness = 2;
    // The order of the ring is fixed, since the change could select another order, which is worse if
    // transfers share links.
    scenario.strategy.ring_order = costmodel::RingOrder::given;
    for (int i = 0; i < sites; ++i) {
      scenario.platform.sites[static_cast<std::size_t>(i)].uplink_bytes_per_s =
          1e5 * *rc::gen::inRange(1, 50);
      scenario.platform.sites[static_cast<std::size_t>(i)].downlink_bytes_per_s =
          1e5 * *rc::gen::inRange(1, 50);
      for (int j = 0; j < sites; ++j) scenario.platform.set_latency(i, j, 0.001 * *rc::gen::inRange(0, 300));
    }
    const RunReport base = simulated(scenario);
    RC_ASSERT(base.wall_clock_s >=
              static_cast<double>(base.optimizer_steps) * 1.0 * (1 - 1e-9));  // 1 s per step
    RC_ASSERT(base.round.exposed_communication_s <= base.round.communication_s * (1 + 1e-9));
    RC_ASSERT(base.bottleneck.link_busy_share <= 1 + 1e-9);

    costmodel::Scenario faster = scenario;
    faster.platform = platforms::scaled_bandwidth(scenario.platform, 2.0);
    RC_ASSERT(simulated(faster).wall_clock_s <= base.wall_clock_s * (1 + 1e-9));

    costmodel::Scenario farther = scenario;
    farther.platform.paths.change_all([](platforms::Path& path) { path.latency_s += 0.05; });
    // Bytes in flight that wait for a late receiver are there at once when it comes: with a longer way, more
    // bytes are in flight. In each hop, this can save at most the longer latency.
    const costmodel::PlanSummary summary = costmodel::summarise(scenario);
    double hops = 0;
    for (const costmodel::Stage& stage : summary.stages) hops += stage.times_per_round * stage.latency_hops;
    RC_ASSERT(simulated(farther).wall_clock_s >= base.wall_clock_s - summary.rounds * hops * 0.05);
    farther.platform.paths.change_all([](platforms::Path& path) { path.latency_s = 0.1; });
    const double equal_s = simulated(farther).wall_clock_s;
    farther.platform.paths.change_all([](platforms::Path& path) { path.latency_s = 0.15; });
    RC_ASSERT(simulated(farther).wall_clock_s >= equal_s * (1 - 1e-9));
  });
  CHECK(ok);
}

TEST_CASE("several sequences in one process: each as if it were alone, whatever the network went through") {
  costmodel::Scenario scenario = tests::ideal_scenario("diloco", 3);
  scenario.platform = platforms::uniform(3, 1e6, 2e6, 0.020);
  const costmodel::Plan plan = costmodel::make_plan(scenario);
  // The rate of the first uplink falls to a tenth at 3 s. There is jitter, and connections begin with slow
  // start.
  using Link = platforms::LinkChange::Link;
  scenario.platform.changes.push_back({3, Link::uplink, 0, 0, 1e5, std::nullopt});
  scenario.platform.changes.push_back({3, Link::path, 0, 1, std::nullopt, 0.200});
  sim::Options options;
  options.network.jitter_s = 0.005;
  options.network.initial_window_bytes = 14600;
  options.seed = 7;
  const auto second = [](auto&&...) { return 1.0; };
  const std::vector<sim::Sequence> sequences = {{{0, 1, 2}}, {{3}}, {{0, 1, 2}}};
  const auto together = sim::simulate_each(plan, sequences, scenario.platform, second, options);
  REQUIRE(together.size() == 3);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto alone = sim::simulate(plan, sequences[i].rounds, scenario.platform, second, options);
    CHECK(together[i].rounds == sequences[i].rounds);
    REQUIRE(together[i].round_end_s.size() == alone.round_end_s.size());
    for (std::size_t r = 0; r < alone.round_end_s.size(); ++r)
      CHECK(together[i].round_end_s[r] == doctest::Approx(alone.round_end_s[r]).epsilon(1e-9));
    CHECK(together[i].sent.bytes == alone.sent.bytes);
    CHECK(together[i].op_names == alone.op_names);
  }
}

TEST_CASE("random placements: rounds are executed until they agree within 0.2 %, or until the limit") {
  costmodel::Scenario scenario = random_experts(4, 2, 1);
  scenario.workload.tokens *= 100;  // 1200 rounds
  const auto executed = [&](double bytes_per_s, std::int64_t most_flows) {
    scenario.platform = platforms::uniform(4, bytes_per_s, bytes_per_s, 0);
    return sim::simulate_scenario(scenario, {.rounds = {}, .most_flows = most_flows}).executed[0].size();
  };
  CHECK(executed(1e12, 5'000) == 8);  // only computation takes time
  CHECK(executed(1e5, 5'000) > 8);    // only communication takes time, which differs by several per cent
  CHECK(executed(1e5, 5'000) < 1200);
  CHECK(executed(1e5, 1'000'000) == 1199);  // all rounds after which experts move
}

TEST_CASE("asked for what a real run can see, it takes waiting for a third site for bytes under way") {
  costmodel::Scenario scenario = tests::ideal_scenario("diloco", 3);
  scenario.strategy.collective = Collective::ring;
  scenario.platform.sites[2].compute_factor = 2;  // both other sites are ready early
  sim::RunOptions as_measured;
  as_measured.seen_flows = true;
  const RunReport all = simulated(scenario), seen = simulated(scenario, as_measured);
  const double late_s = all.sites[2].compute_s - all.sites[0].compute_s;
  tests::check_close(all.wall_clock_s, seen.wall_clock_s);
  tests::check_close(all.round.communication_s, seen.round.communication_s);
  CHECK(seen.round.transferring_s > all.round.transferring_s + 0.3 * late_s);
  CHECK(seen.round.idle_s < all.round.idle_s - 0.3 * late_s);
}

TEST_CASE("a simulated run with failures has the goodput that its wall clock gives") {
  costmodel::Scenario scenario = tests::ideal_scenario("diloco", 2);
  CHECK_FALSE(simulated(scenario).goodput.has_value());
  scenario.failures.emplace();
  scenario.failures->site_mtbf_s = 3600;
  scenario.failures->restart_s = 60;
  scenario.failures->checkpoint_s = 1;
  const RunReport simulation = simulated(scenario), formula = costmodel::closed_form(scenario);
  REQUIRE(simulation.goodput.has_value());
  CHECK(simulation.goodput->goodput == doctest::Approx(formula.goodput->goodput).epsilon(1e-6));
}

TEST_CASE(
    "whoever waits for a simulation is told how far it is: times that rise, rounds that end, and the end") {
  const costmodel::Scenario scenario = tests::ideal_scenario("diloco", 3);
  const costmodel::Plan plan = costmodel::make_plan(scenario);
  const auto slowly = [](auto&&...) {
    ::usleep(100'000);
    return 1.0;
  };
  std::vector<sim::SimulationProgress> seen;
  sim::Options options;
  options.on_progress = [&](const sim::SimulationProgress& progress) { seen.push_back(progress); };
  (void)sim::simulate(plan, {0, 1, 2, 3}, scenario.platform, slowly, options);
  REQUIRE(seen.size() >= 3);
  CHECK(seen.back().ended);
  seen.pop_back();
  CHECK(seen.back().rounds == 4);
  CHECK(seen.back().rounds_finished >= 1);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CHECK_FALSE(seen[i].ended);
    if (i > 0) CHECK(seen[i].simulated_s >= seen[i - 1].simulated_s);
  }
}
