// Measures how fast plans are made and simulated. It is not a test: `build/release/bin/bench_sim` prints
// times, and the comment at each benchmark has the time that it should stay below.
#include <benchmark/benchmark.h>

#include <string>

#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "sim/executor/simulate.hpp"
#include "sim/executor/simulated_run.hpp"
#include "tests/benchmarks/by_hand.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;

namespace {

costmodel::Scenario preset(const char* name, int sites, int overlap) {
  costmodel::Scenario scenario = tests::ideal_scenario("fomoe", sites, overlap);
  scenario.model = *costmodel::find_preset(name);
  scenario.workload.global_batch_sequences = 32 * sites;
  scenario.workload.tokens = 100 * scenario.workload.global_batch_sequences * scenario.model.sequence_length;
  scenario.platform = platforms::uniform(sites, 1.25e9, 1.25e9, 0.025);
  return scenario;
}

costmodel::Timeline play(const costmodel::Plan& plan, std::int64_t round,
                         const costmodel::Scenario& scenario) {
  return sim::simulate(plan, {round}, scenario.platform, [](auto&&...) { return 1.0; },
                       {.network = scenario.network, .seed = scenario.seed});
}

// One round of 104 billion parameters at 32 sites with random placement, migration included. Limit: 1 s.
void xxl_round(benchmark::State& state) {
  costmodel::Scenario scenario = preset("xxl", 32, 8);
  scenario.strategy.placement = costmodel::PlacementKind::random;
  const costmodel::Plan plan = costmodel::find_method("fomoe")->plan(scenario);
  for (auto _ : state) benchmark::DoNotOptimize(play(plan, 0, scenario).round_end_s);
}
BENCHMARK(xxl_round)->Unit(benchmark::kMillisecond)->Iterations(3)->UseRealTime();

void xxl_plan(benchmark::State& state) {
  costmodel::Scenario scenario = preset("xxl", 32, 8);
  scenario.strategy.placement = costmodel::PlacementKind::random;
  const costmodel::Plan plan = costmodel::find_method("fomoe")->plan(scenario);
  for (auto _ : state) benchmark::DoNotOptimize(plan.round(0).ops.size());
}
BENCHMARK(xxl_plan)->Unit(benchmark::kMillisecond)->Iterations(3)->UseRealTime();

// A DiLoCo round in a ring. Limits: 1 s for 64 sites with the stepwise ring, 3 s for 1,000 sites with the
// fluid ring.
void diloco_round(benchmark::State& state) {
  costmodel::Scenario scenario = preset("large", static_cast<int>(state.range(0)), 0);
  scenario.strategy.method = costmodel::find_method("diloco");
  scenario.network.ring_model =
      state.range(1) != 0 ? costmodel::RingModel::fluid : costmodel::RingModel::stepwise;
  const costmodel::Plan plan = costmodel::find_method("diloco")->plan(scenario);
  for (auto _ : state) benchmark::DoNotOptimize(play(plan, 0, scenario).round_end_s);
}
BENCHMARK(diloco_round)
    ->ArgNames({"sites", "fluid"})
    ->Args({64, 0})
    ->Args({1000, 1})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// The time per flow of ring traffic should not depend on the number of flows (within 20 %).
void ring_flows(benchmark::State& state) {
  const auto flows = state.range(0);
  costmodel::Scenario scenario = preset("small", 64, 0);
  scenario.strategy.method = costmodel::find_method("diloco");
  const costmodel::Plan plan = costmodel::find_method("diloco")->plan(scenario);
  const std::int64_t flows_per_round = 64 * 2 * 63;
  const std::vector<std::int64_t> rounds(static_cast<std::size_t>(flows / flows_per_round), 0);
  for (auto _ : state) {
    const auto timeline = sim::simulate(plan, rounds, scenario.platform, [](auto&&...) { return 1.0; });
    benchmark::DoNotOptimize(timeline.round_end_s);
  }
  state.counters["s/flow"] =
      benchmark::Counter(static_cast<double>(rounds.size()) * static_cast<double>(flows_per_round),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(ring_flows)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// A scenario of a sweep with 8 sites: 3 rounds of DiLoCo in a ring, and the same flows in hand-written
// SimGrid code. The first should take at most twice as long as the second.
constexpr int kSweepSites = 8, kSweepRounds = 3;
void sweep_scenario(benchmark::State& state) {
  costmodel::Scenario scenario = preset("small", kSweepSites, 0);
  scenario.strategy.method = costmodel::find_method("diloco");
  scenario.strategy.collective = costmodel::Collective::ring;
  sim::RunOptions options;
  options.rounds = kSweepRounds;
  for (auto _ : state)
    benchmark::DoNotOptimize(sim::simulate_scenario(scenario, options).report.wall_clock_s);
}
BENCHMARK(sweep_scenario)->Unit(benchmark::kMillisecond)->UseRealTime();

void sweep_flows_by_hand(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(tests::rings_by_hand(kSweepSites, kSweepRounds, 10'000'000, 1.25e9, 0.025));
}
BENCHMARK(sweep_flows_by_hand)->Unit(benchmark::kMillisecond)->UseRealTime();

// Flows of hand-written rings; the argument is their number. The time of xxl_round should be at most that of
// 0.45 M flows.
void flows_by_hand(benchmark::State& state) {
  const int rounds = static_cast<int>(state.range(0) / (32 * 2 * 31));
  for (auto _ : state) benchmark::DoNotOptimize(tests::rings_by_hand(32, rounds, 10'000'000, 1.25e9, 0.025));
}
BENCHMARK(flows_by_hand)->Arg(450'000)->Unit(benchmark::kMillisecond)->Iterations(3)->UseRealTime();

// A whole `simulate` of six sites, without the start of the process. Limit: 0.1 s.
void six_sites(benchmark::State& state) {
  const costmodel::Scenario scenario = preset("medium", 6, 3);
  for (auto _ : state) benchmark::DoNotOptimize(sim::simulate_scenario(scenario).report.wall_clock_s);
}
BENCHMARK(six_sites)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
