// Tests of resolved scenarios: the row of a sweep against the report of the closed form, which adds up sites.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <random>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/outcome.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "tests/memory_of.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

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

// A random scenario with the inputs that all configurations of a sweep share.
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
  gpus.context_parallel = one_of({1, 1, 2});
  gpus.stack = one_of({Stack::fomoe, Stack::megatron, Stack::torchtitan, Stack::deepspeed});
  if (gpus.activation_checkpointing) gpus.checkpoint_every = one_of({1, 2});
  gpus.outer_state_on = one_of({OuterStateOn::device, OuterStateOn::host});
  if (*rc::gen::arbitrary<bool>()) {
    const SitePrices site{{}, 2.0 / 3600, 1600, 3e-8, {{1e12, 1e-10}, {platforms::kUnlimited, 5e-11}}, {}};
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
Scenario random_configuration(Scenario scenario, std::mt19937_64& random) {
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
  gpus.count = gpus.sharded * gpus.gpus_per_replica() * gpus.expert_parallel * static_cast<int>(whole(1, 8));
  return scenario;
}

// Compares relative to the larger value, or to `scale` if the value is a difference of larger ones.
bool agree(double a, double b, double scale = 0) {
  return std::abs(a - b) <= 1e-12 * std::max({std::abs(a), std::abs(b), scale});
}

}  // namespace

TEST_CASE("the row of a scenario equals the closed form's report, to 1e-12") {
  // 100 contexts of 64 configurations include every method, collective, placement and kind of compute.
  const bool ok = rc::check([] {
    const Scenario context = random_context();
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    for (int i = 0; i < 64; ++i) {
      const Scenario scenario = random_configuration(context, random);
      const Outcome outcome = outcome_of(resolve(scenario));
      const RunReport report = closed_form(scenario);
      const double round_s = report.round.duration_s;
      RC_LOG() << scenario.strategy.method->name << " " << outcome.wall_clock_s << " " << report.wall_clock_s
               << "\n";
      RC_ASSERT(agree(outcome.wall_clock_s, report.wall_clock_s));
      RC_ASSERT(agree(outcome.compute_utilization, report.compute_utilization));
      RC_ASSERT(agree(outcome.tokens_per_s, report.tokens_per_s));
      RC_ASSERT(agree(outcome.bytes_per_token, report.bytes_per_token));
      RC_ASSERT(agree(outcome.bytes_sent_per_site_per_round, report.bytes_sent_per_site_per_round));
      RC_ASSERT(outcome.optimizer_steps == static_cast<double>(report.optimizer_steps));
      RC_ASSERT(outcome.tokens == static_cast<double>(report.tokens));
      RC_ASSERT(outcome.round_count == static_cast<double>(report.round.count));
      RC_ASSERT(agree(outcome.round_duration_s, round_s));
      RC_ASSERT(agree(outcome.round_compute_s, report.round.compute_s));
      RC_ASSERT(agree(outcome.round_communication_s, report.round.communication_s));
      RC_ASSERT(agree(outcome.round_exposed_communication_s, report.round.exposed_communication_s));
      RC_ASSERT(agree(outcome.round_idle_s, report.round.idle_s, round_s));
      RC_ASSERT(agree(outcome.link_busy_share, report.bottleneck.link_busy_share));
      RC_ASSERT(agree(outcome.memory_bytes_per_site, memory_per_site(scenario).total()));
      RC_ASSERT(agree(outcome.memory_bytes_per_gpu, fullest_gpu(scenario).needed));
      RC_ASSERT(agree(outcome.flops_per_token,
                      flops_per_token(scenario.model, expert_shares(scenario).of_layer(0),
                                      scenario.strategy.skip_token, FlopsAccounting::mechanism)
                          .total()));
      const SentBytes sent = summarise(scenario).sent;
      RC_ASSERT(agree(outcome.sent.dense, sent.dense));
      RC_ASSERT(agree(outcome.sent.expert_sync, sent.expert_sync));
      RC_ASSERT(agree(outcome.sent.migration, sent.migration));
      RC_ASSERT(agree(outcome.sent.data, sent.data));
      RC_ASSERT(agree(outcome.sent.checkpoint, sent.checkpoint));
      RC_ASSERT(agree(outcome.sent.rejoin, sent.rejoin));
      RC_ASSERT(scenario.prices.has_value() == report.cost.has_value());
      if (!report.cost) continue;
      RC_ASSERT(agree(outcome.cost_total, report.cost->cost_total));
      RC_ASSERT(agree(outcome.energy_kwh, *report.cost->energy_kwh));
    }
  });
  CHECK(ok);
}

TEST_CASE("sites with different prices: the cost is the sum over the sites") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  SitePrices cheap, dear;
  cheap.gpu_price_per_s = 1;
  dear.gpu_price_per_s = 10;
  scenario.prices = Prices{"USD", "", {cheap, dear, dear, cheap}, {}};
  const Outcome outcome = outcome_of(resolve(scenario));
  CHECK(agree(outcome.cost_total, outcome.wall_clock_s * (1 + 10 + 10 + 1)));
  CHECK(agree(outcome.cost_total, closed_form(scenario).cost->cost_total));
}

TEST_CASE("one configuration by hand: fomoe, M = 2, O_e = 1, fixed, ring, 1 GB/s, 10 ms") {
  Scenario scenario = tests::ideal_scenario("fomoe", 2, 1);
  scenario.platform = platforms::uniform(2, 1e9, 1e9, 0.010);
  const Outcome outcome = outcome_of(resolve(scenario));
  const ParameterCounts counts = count_parameters(scenario.model);
  const double dense = static_cast<double>(counts.embedding + counts.attention + counts.norm);
  const double sparse = static_cast<double>(counts.expert + counts.router);
  const double sync_s = 2 * 0.010 + 2.0 * dense / 1e9;  // 2(M−1) hops; 2(M−1)/M = 1; bf16; R(1) = 0
  CHECK(outcome.wall_clock_s == doctest::Approx(12 * (5 * 1.0 + sync_s)).epsilon(1e-14));
  CHECK(outcome.bytes_sent_per_site_per_round == 2.0 * dense);
  CHECK(outcome.memory_bytes_per_site == 26.0 * (dense + sparse / 2));  // 18 B, and 8 B of outer state
  CHECK(outcome.round_idle_s == 0);
}
