// Tests of the block path of a sweep against the closed form of each scenario.
#include "costmodel/formula/sweep.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <random>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/memory.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

constexpr std::size_t kLanes = Block::kLanes;

template <class T>
T one_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}
// A profile of steps of 4 sequences, measured at three counts of local experts; steps take longer with more
// of them.
ProfiledCompute profile_for(const ModelShape& shape, bool skip_token) {
  ProfiledCompute compute;
  compute.micro_batch_sequences = 4;
  compute.profile.model = shape;
  compute.profile.dtype = "bf16";  // memory depends on the number of micro-batches
  compute.profile.synchronisation = SynchronisationTimes{{{ElementType::bf16, 3e9}}, 2e-9};
  for (const std::int64_t experts : {1, 2, 8}) {
    const auto n = static_cast<double>(experts);
    compute.profile.points.push_back(
        {4, experts, skip_token, 0, {{0.01 + 0.002 * n, 0.02 + 0.005 * n * n, 0.001 * n}}, 0.003 * n});
  }
  return compute;
}

// A random scenario with the inputs that all lanes of one block share.
Scenario random_context() {
  Scenario scenario = tests::ideal_scenario("ddp", 2);
  scenario.strategy.method = &methods()[*rc::gen::inRange<std::size_t>(0, methods().size())];
  scenario.strategy.placement = one_of({PlacementKind::fixed, PlacementKind::random});
  scenario.strategy.collective = one_of({Collective::ring, Collective::direct});
  scenario.strategy.skip_token = *rc::gen::arbitrary<bool>();
  if (scenario.strategy.method->every_step) scenario.strategy.fragments = *rc::gen::inRange(1, 3);
  scenario.strategy.sharding = one_of(
      {Sharding::full_shard, Sharding::full_shard_no_sync, Sharding::shard_grad_op, Sharding::hybrid_shard});
  scenario.strategy.schedule = one_of({PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b});
  scenario.strategy.outer_optimizer =
      one_of({OuterOptimizer::nesterov, OuterOptimizer::average, OuterOptimizer::local_adamw});
  if (*rc::gen::arbitrary<bool>())
    scenario.strategy.parameter_dtype = one_of({ElementType::fp32, ElementType::int8});
  scenario.strategy.wire = plain_format(one_of({ElementType::bf16, ElementType::fp32, ElementType::int8}));
  const int compute = *rc::gen::inRange(0, 4);
  if (compute == 1) scenario.compute = AssumedDevice{1e12, 0, 0.5};
  if (compute == 3) scenario.compute = AssumedDevice{1e12, 0.5, 0};
  if (compute == 2) {
    scenario.compute = profile_for(scenario.model, scenario.strategy.skip_token);
    if (*rc::gen::arbitrary<bool>()) scenario.network.payload_bytes_per_s = 3e9;
  }
  SiteGpus& gpus = scenario.gpus;
  gpus.sharded = one_of({1, 1, 2});
  gpus.zero_stage = one_of({1, 2, 3});
  gpus.tensor_parallel = one_of({1, 1, 4});
  gpus.expert_parallel = one_of({1, 1, 2});
  gpus.pipeline_parallel = one_of({1, 1, 2});
  gpus.memory_bytes_per_s = one_of({0.0, 2e12});
  gpus.intra_site_bytes_per_s = one_of({0.0, 1e10});
  gpus.micro_batch_sequences = one_of({0, 3});
  gpus.activation_checkpointing = *rc::gen::arbitrary<bool>();
  gpus.outer_state_on = one_of({OuterStateOn::device, OuterStateOn::host});
  if (*rc::gen::arbitrary<bool>()) {
    const SitePrices site{2.0 / 3600, 1600, 3e-8, {{1e12, 1e-10}, {platforms::kUnlimited, 5e-11}}};
    scenario.prices = Prices{"USD", "", std::vector<SitePrices>(8, site), {}};  // at most eight sites
    scenario.power = GpuPower{700, 0.2, 1.2};
  }
  scenario.network.background_share = one_of({0.0, 0.3});
  scenario.network.congestion_control = one_of({CongestionControl::cubic, CongestionControl::bbr});
  if (*rc::gen::arbitrary<bool>()) {
    scenario.traffic = {one_of<std::optional<int>>({std::nullopt, 0, 1}), 4.0,
                        one_of<std::optional<int>>({std::nullopt, 0}),    10,
                        one_of<std::optional<int>>({std::nullopt, 1}),    100};
  }
  return scenario;
}

// A random configuration of the given scenario, which varies every number that a sweep can vary.
Scenario random_lane(Scenario scenario, std::mt19937_64& random) {
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto whole = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const int sites = 1 << whole(0, 3);
  scenario.platform = platforms::uniform(sites, between(1e6, 1e10), between(1e6, 1e10), between(0, 0.3));
  scenario.network.bandwidth_efficiency = between(0.1, 1);
  Strategy& strategy = scenario.strategy;
  strategy.expert_overlap = sites >> whole(0, std::countr_zero(static_cast<unsigned>(sites)));
  strategy.local_steps = whole(1, 200);
  strategy.reshuffle_rounds = whole(1, 8);
  scenario.workload.tokens = whole(1, 1'000'000'000);
  scenario.workload.global_batch_sequences = whole(sites, 500);  // not always divisible by the sites
  if (auto* given = std::get_if<GivenStepTime>(&scenario.compute)) given->seconds = between(1e-3, 100);
  if (auto* device = std::get_if<AssumedDevice>(&scenario.compute)) {
    device->peak_flops = between(1e10, 1e15);
    (device->mfu > 0 ? device->mfu : device->kernel_efficiency) = between(0.01, 1);
  }
  SiteGpus& gpus = scenario.gpus;
  gpus.count = gpus.sharded * gpus.tensor_parallel * gpus.expert_parallel * gpus.pipeline_parallel *
               static_cast<int>(whole(1, 8));
  return scenario;
}

void set_lane(Configuration<Block>& block, std::size_t lane, const Configuration<double>& one) {
  block.axes.sites[lane] = one.axes.sites;
  block.axes.local_steps[lane] = one.axes.local_steps;
  block.axes.expert_overlap[lane] = one.axes.expert_overlap;
  block.axes.reshuffle_rounds[lane] = one.axes.reshuffle_rounds;
  block.axes.tokens[lane] = one.axes.tokens;
  block.axes.global_batch_sequences[lane] = one.axes.global_batch_sequences;
  block.uplink_bytes_per_s[lane] = one.uplink_bytes_per_s;
  block.downlink_bytes_per_s[lane] = one.downlink_bytes_per_s;
  block.latency_s[lane] = one.latency_s;
  block.bandwidth_efficiency[lane] = one.bandwidth_efficiency;
  block.step_time_s[lane] = one.step_time_s;
  block.peak_flops[lane] = one.peak_flops;
  block.share_of_peak[lane] = one.share_of_peak;
  block.gpus_per_site[lane] = one.gpus_per_site;
}

// Compares relative to the larger value, or to `scale` if the value is a difference of larger ones.
bool agree(double a, double b, double scale = 0) {
  return std::abs(a - b) <= 1e-12 * std::max({std::abs(a), std::abs(b), scale});
}

}  // namespace

TEST_CASE("a block of configurations equals the closed form of each scenario, to 1e-12") {
  // 100 contexts of 64 lanes include every method, collective, placement and kind of compute.
  const bool ok = rc::check([] {
    const Scenario context = random_context();
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    std::vector<Scenario> scenarios;
    Configuration<Block> block = replicated(configuration_of(context));
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      scenarios.push_back(random_lane(context, random));
      set_lane(block, lane, configuration_of(scenarios.back()));
    }
    Outcome<Block> outcome;
    evaluate(sweep_context(context), block, outcome);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const Scenario& scenario = scenarios[static_cast<std::size_t>(lane)];
      const RunReport report = closed_form(scenario);
      const double round_s = report.round.duration_s;
      RC_LOG() << scenario.strategy.method->name << " " << outcome.wall_clock_s[lane] << " "
               << report.wall_clock_s << "\n";
      RC_ASSERT(agree(outcome.wall_clock_s[lane], report.wall_clock_s));
      RC_ASSERT(agree(outcome.compute_utilization[lane], report.compute_utilization));
      RC_ASSERT(agree(outcome.tokens_per_s[lane], report.tokens_per_s));
      RC_ASSERT(agree(outcome.bytes_per_token[lane], report.bytes_per_token));
      RC_ASSERT(agree(outcome.bytes_sent_per_site_per_round[lane], report.bytes_sent_per_site_per_round));
      RC_ASSERT(outcome.optimizer_steps[lane] == static_cast<double>(report.optimizer_steps));
      RC_ASSERT(outcome.tokens[lane] == static_cast<double>(report.tokens));
      RC_ASSERT(outcome.round_count[lane] == static_cast<double>(report.round.count));
      RC_ASSERT(agree(outcome.round_duration_s[lane], round_s));
      RC_ASSERT(agree(outcome.round_compute_s[lane], report.round.compute_s));
      RC_ASSERT(agree(outcome.round_communication_s[lane], report.round.communication_s));
      RC_ASSERT(agree(outcome.round_exposed_communication_s[lane], report.round.exposed_communication_s));
      RC_ASSERT(agree(outcome.round_idle_s[lane], report.round.idle_s, round_s));
      RC_ASSERT(agree(outcome.link_busy_share[lane], report.bottleneck.link_busy_share));
      RC_ASSERT(agree(outcome.memory_bytes_per_site[lane], memory_per_site(scenario).total()));
      RC_ASSERT(agree(outcome.memory_bytes_per_gpu[lane], memory_per_gpu(scenario).total()));
      RC_ASSERT(agree(outcome.flops_per_token[lane],
                      flops_per_token(scenario.model, local_experts(scenario), scenario.strategy.skip_token,
                                      FlopsAccounting::mechanism)
                          .total()));
      const SentBytes<double> sent = summarise(scenario).sent;
      RC_ASSERT(agree(outcome.sent.dense[lane], sent.dense));
      RC_ASSERT(agree(outcome.sent.expert_sync[lane], sent.expert_sync));
      RC_ASSERT(agree(outcome.sent.migration[lane], sent.migration));
      RC_ASSERT(agree(outcome.sent.data[lane], sent.data));
      RC_ASSERT(agree(outcome.sent.checkpoint[lane], sent.checkpoint));
      RC_ASSERT(agree(outcome.sent.rejoin[lane], sent.rejoin));
      RC_ASSERT(scenario.prices.has_value() == report.cost.has_value());
      if (!report.cost) continue;
      RC_ASSERT(agree(outcome.cost_total[lane], report.cost->cost_total));
      RC_ASSERT(agree(outcome.energy_kwh[lane], *report.cost->energy_kwh));
    }
  });
  CHECK(ok);
}

TEST_CASE(
    "a block of different fragments and overlap steps: each lane equals the closed form of its scenario") {
  Scenario scenario = tests::ideal_scenario("streaming_diloco", 4);
  scenario.strategy.local_steps = 12;
  scenario.model.layers = 8;
  scenario.platform = platforms::uniform(4, 1e8, 1e8, 0.05);
  Configuration<Block> block = replicated(configuration_of(scenario));
  std::vector<Scenario> lanes;
  for (const int fragments : {1, 2, 3, 4, 8}) {
    for (const std::int64_t late : {0, 1, 3, 12}) {
      const auto lane = lanes.size();
      lanes.push_back(scenario);
      lanes.back().strategy.fragments = fragments;
      lanes.back().strategy.overlap_steps = late;
      block.axes.fragments[lane] = fragments;
      block.axes.overlap_steps[lane] = static_cast<double>(late);
    }
  }
  Outcome<Block> outcome;
  evaluate(sweep_context(scenario), block, outcome);
  for (std::size_t i = 0; i < lanes.size(); ++i)
    CHECK(agree(outcome.wall_clock_s[i], closed_form(lanes[i]).wall_clock_s));
}

TEST_CASE("layers that are sent one after another: each lane equals the closed form of its scenario") {
  for (const char* method : {"diloco", "streaming_diloco"}) {
    CAPTURE(method);
    Scenario scenario = tests::ideal_scenario(method, 4);
    scenario.strategy.layerwise = true;
    scenario.model.layers = 8;
    Configuration<Block> block = replicated(configuration_of(scenario));
    std::vector<Scenario> lanes;
    const bool streams = std::string(method) == "streaming_diloco";
    for (const std::int64_t local_steps : {8, 12, 30}) {
      for (const double rate : {1e6, 1e8, 1e10}) {  // little, some and all of the transfer is hidden
        for (const int fragments : streams ? std::vector{2, 8} : std::vector{1}) {
          const auto lane = lanes.size();
          lanes.push_back(scenario);
          lanes.back().strategy.local_steps = local_steps;
          lanes.back().strategy.fragments = fragments;
          lanes.back().platform = platforms::uniform(4, rate, rate, 0.05);
          block.axes.local_steps[lane] = static_cast<double>(local_steps);
          block.axes.fragments[lane] = fragments;
          block.uplink_bytes_per_s[lane] = block.downlink_bytes_per_s[lane] = rate;
          block.latency_s[lane] = 0.05;
        }
      }
    }
    Outcome<Block> outcome;
    evaluate(sweep_context(scenario), block, outcome);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      CAPTURE(i);
      CHECK(agree(outcome.wall_clock_s[i], closed_form(lanes[i]).wall_clock_s));
    }
  }
}

TEST_CASE("sites with different prices: the cost is the sum over the sites") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  SitePrices cheap, dear;
  cheap.gpu_price_per_s = 1;
  dear.gpu_price_per_s = 10;
  scenario.prices = Prices{"USD", "", {cheap, dear, dear, cheap}, {}};
  Outcome<double> outcome;
  evaluate(sweep_context(scenario), configuration_of(scenario), outcome);
  CHECK(agree(outcome.cost_total, outcome.wall_clock_s * (1 + 10 + 10 + 1)));
  CHECK(agree(outcome.cost_total, closed_form(scenario).cost->cost_total));
}

TEST_CASE("one configuration by hand: fomoe, M = 2, O_e = 1, fixed, ring, 1 GB/s, 10 ms") {
  Scenario scenario = tests::ideal_scenario("fomoe", 2, 1);
  scenario.platform = platforms::uniform(2, 1e9, 1e9, 0.010);
  Outcome<double> outcome;
  evaluate(sweep_context(scenario), configuration_of(scenario), outcome);
  const ParameterCounts counts = count_parameters(scenario.model);
  const double dense = static_cast<double>(counts.embedding + counts.attention + counts.norm);
  const double sparse = static_cast<double>(counts.expert + counts.router);
  const double sync_s = 2 * 0.010 + 2.0 * dense / 1e9;  // 2(M−1) hops; 2(M−1)/M = 1; bf16; R(1) = 0
  CHECK(outcome.wall_clock_s == doctest::Approx(12 * (5 * 1.0 + sync_s)).epsilon(1e-14));
  CHECK(outcome.bytes_sent_per_site_per_round == 2.0 * dense);
  CHECK(outcome.memory_bytes_per_site == 26.0 * (dense + sparse / 2));  // 18 B, and 8 B of outer state
  CHECK(outcome.round_idle_s == 0);
}
