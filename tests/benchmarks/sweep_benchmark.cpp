// Measures how many configurations one core evaluates per second: the complete closed form.
//   cmake --build build --target bench_sweep && build/bin/bench_sweep
// The result is the counter `configurations/s`.
#include <benchmark/benchmark.h>

#include "costmodel/formula/outcome.hpp"
#include "tests/scenarios.hpp"

namespace {

using namespace fomoe;

costmodel::Scenario scenario_of(const char* method, bool assumed_device) {
  costmodel::Scenario scenario = tests::ideal_scenario(method, 8, 2);
  scenario.model = *costmodel::find_preset("large");
  scenario.workload = {60'000'000'000, 1024};
  scenario.strategy.placement = costmodel::PlacementKind::random;
  if (assumed_device) {
    scenario.compute = costmodel::AssumedDevice{989e12, 0.4};
    scenario.gpus.count = 8;
  }
  return scenario;
}

// Every stage is resolved for every scenario, as for a key that the first stage reads.
void closed_form(benchmark::State& state, const char* method, bool assumed_device) {
  costmodel::Scenario scenario = scenario_of(method, assumed_device);
  costmodel::Resolved resolved = costmodel::resolve(scenario);
  for (auto _ : state) {
    scenario.workload.global_batch_sequences = 64 + (scenario.workload.global_batch_sequences + 1) % 4096;
    costmodel::resolve(scenario, costmodel::Resolving::counts, resolved);
    benchmark::DoNotOptimize(costmodel::outcome_of(resolved));
  }
  state.counters["configurations/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(closed_form, fomoe_random_assumed_device, "fomoe", true);
BENCHMARK_CAPTURE(closed_form, fomoe_random_step_time, "fomoe", false);
BENCHMARK_CAPTURE(closed_form, diloco_assumed_device, "diloco", true);
BENCHMARK_CAPTURE(closed_form, ddp_assumed_device, "ddp", true);

}  // namespace

BENCHMARK_MAIN();
