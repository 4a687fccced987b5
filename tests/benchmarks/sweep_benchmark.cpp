// Measures how many configurations one core evaluates per second: the complete closed form, block by block.
//   cmake --build build --target bench_sweep && build/bin/bench_sweep
// The result is the counter `configurations/s`. Every lane differs in every axis, so that nothing is
// constant.
#include <benchmark/benchmark.h>

#include <random>

#include "costmodel/formula/sweep.hpp"
#include "tests/scenarios.hpp"

namespace {

using namespace fomoe;
using costmodel::Block;

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

/// Returns 16 blocks of random legal configurations.
std::vector<costmodel::Configuration<Block>> random_blocks(const costmodel::Scenario& scenario) {
  std::mt19937_64 random(7);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  std::vector<costmodel::Configuration<Block>> blocks(16, replicated(costmodel::configuration_of(scenario)));
  for (auto& block : blocks) {
    for (std::size_t lane = 0; lane < Block::kLanes; ++lane) {
      const double sites = std::exp2(std::floor(uniform(1, 6)));
      block.axes.sites[lane] = sites;
      block.axes.expert_overlap[lane] = std::exp2(std::floor(uniform(0, std::log2(sites) + 1)));
      block.axes.local_steps[lane] = std::floor(uniform(1, 512));
      block.axes.reshuffle_rounds[lane] = std::floor(uniform(1, 16));
      block.axes.tokens[lane] = std::floor(uniform(1e9, 1e12));
      block.axes.global_batch_sequences[lane] = std::floor(uniform(64, 4096));
      block.uplink_bytes_per_s[lane] = uniform(1e8, 1e11);
      block.downlink_bytes_per_s[lane] = uniform(1e8, 1e11);
      block.latency_s[lane] = uniform(0, 0.3);
      block.bandwidth_efficiency[lane] = uniform(0.5, 1);
      block.mfu[lane] = uniform(0.1, 0.6);
    }
  }
  return blocks;
}

void closed_form_block(benchmark::State& state, const char* method, bool assumed_device) {
  const costmodel::Scenario scenario = scenario_of(method, assumed_device);
  const costmodel::SweepContext context = costmodel::sweep_context(scenario);
  const auto blocks = random_blocks(scenario);
  costmodel::Outcome<Block> outcome;
  std::size_t next = 0;
  for (auto _ : state) {
    costmodel::evaluate(context, blocks[next++ % blocks.size()], outcome);
    benchmark::DoNotOptimize(outcome);
    benchmark::ClobberMemory();
  }
  constexpr auto kBlockLanes = static_cast<double>(Block::kLanes);
  state.counters["configurations/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kBlockLanes, benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(closed_form_block, fomoe_random_assumed_device, "fomoe", true);
BENCHMARK_CAPTURE(closed_form_block, fomoe_random_step_time, "fomoe", false);
BENCHMARK_CAPTURE(closed_form_block, diloco_assumed_device, "diloco", true);
BENCHMARK_CAPTURE(closed_form_block, ddp_assumed_device, "ddp", true);

/// For comparison: evaluates one configuration at a time with the same formulas.
void closed_form_scalar(benchmark::State& state) {
  const costmodel::Scenario scenario = scenario_of("fomoe", true);
  const costmodel::SweepContext context = costmodel::sweep_context(scenario);
  const costmodel::Configuration<double> configuration = costmodel::configuration_of(scenario);
  costmodel::Outcome<double> outcome;
  for (auto _ : state) {
    costmodel::evaluate(context, configuration, outcome);
    benchmark::DoNotOptimize(outcome);
  }
  state.counters["configurations/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(closed_form_scalar);

}  // namespace

BENCHMARK_MAIN();
