// Measures how many configurations one core evaluates per second: the complete closed form.
//   cmake --build build --target bench_sweep && build/bin/bench_sweep
// The result is the counter `configurations/s`. Every configuration differs in every axis.
#include <benchmark/benchmark.h>

#include <random>

#include "costmodel/formula/sweep.hpp"
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

/// Returns random legal configurations.
std::vector<costmodel::Configuration> random_configurations(const costmodel::Scenario& scenario) {
  std::mt19937_64 random(7);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  std::vector<costmodel::Configuration> all(1024, costmodel::configuration_of(scenario));
  for (costmodel::Configuration& one : all) {
    const double sites = std::exp2(std::floor(uniform(1, 6)));
    one.axes.sites = sites;
    one.axes.expert_overlap = std::exp2(std::floor(uniform(0, std::log2(sites) + 1)));
    one.axes.local_steps = std::floor(uniform(1, 512));
    one.axes.reshuffle_rounds = std::floor(uniform(1, 16));
    one.axes.tokens = std::floor(uniform(1e9, 1e12));
    one.axes.global_batch_sequences = std::floor(uniform(64, 4096));
    one.uplink_bytes_per_s = uniform(1e8, 1e11);
    one.downlink_bytes_per_s = uniform(1e8, 1e11);
    one.latency_s = uniform(0, 0.3);
    one.bandwidth_efficiency = uniform(0.5, 1);
    one.share_of_peak = uniform(0.1, 0.6);
  }
  return all;
}

void closed_form(benchmark::State& state, const char* method, bool assumed_device) {
  const costmodel::Scenario scenario = scenario_of(method, assumed_device);
  const costmodel::SweepContext context = costmodel::sweep_context(scenario);
  const auto configurations = random_configurations(scenario);
  std::size_t next = 0;
  for (auto _ : state) {
    costmodel::Outcome outcome;
    costmodel::evaluate(context, configurations[next++ % configurations.size()], outcome);
    benchmark::DoNotOptimize(outcome);
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
