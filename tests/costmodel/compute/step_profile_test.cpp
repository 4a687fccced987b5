// Tests of step times from a profile: medians, interpolation, and refusal outside of the measured model.
#include <doctest/doctest.h>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

StepProfile profile_of(const ModelShape& model) {
  StepProfile profile;
  profile.model = model;
  profile.device_name = "a device";
  profile.source = "p.json";
  profile.points = {
      {2,
       8,
       false,
       0,
       {{8.0, 16.0, 4.0}, {9.0, 17.0, 5.0}, {100.0, 100.0, 100.0}}},  // medians 9, 17, 5: one outlier
      {2, 4, false, 0, {{5.0, 9.0, 3.0}}},
  };
  return profile;
}

}  // namespace

TEST_CASE("a measured point returns its medians, points between are linear, and points outside are marked") {
  const StepProfile profile = profile_of(tests::divisible_shape());
  StepEstimate step = estimate_step(profile, 2, 8, false);
  CHECK(step.micro_batch.forward_s == 9);
  CHECK(step.micro_batch.backward_s == 17);
  CHECK(step.micro_batch.optimizer_s == 5);
  CHECK(!step.extrapolated);
  step = estimate_step(profile, 2, 5, false);  // a quarter of the way from 4 to 8
  CHECK(step.micro_batch.forward_s == 6);
  CHECK(!step.extrapolated);
  step = estimate_step(profile, 2, 2, false);
  CHECK(step.micro_batch.forward_s == 3);
  CHECK(step.extrapolated);
  CHECK(estimate_step(profile, 2, 1, false).micro_batch.optimizer_s == doctest::Approx(1.5));
  CHECK_THROWS_AS(estimate_step(profile, 1, 8, false), InputError);
  CHECK_THROWS_AS(estimate_step(profile, 2, 8, true), InputError);
}

TEST_CASE("steps of a log: any micro-batch, the largest batch, and a GPU's share that may be a fraction") {
  StepProfile profile = profile_of(tests::divisible_shape());
  profile.points = {{1, 8, false, 0, {{1, 2, 0}}}, {1, 8, false, 0, {{2, 4, 0}}}};
  profile.points[0].sequences_per_gpu = 0.375;
  profile.points[1].sequences_per_gpu = 0.75;
  profile.origin.emplace();
  profile.origin->file = "train.log";
  CHECK(usual_micro_batch(profile) == 1);
  for (const std::int64_t micro_batch : {1, 4}) {
    const StepEstimate step = estimate_step(profile, micro_batch, 8, false);
    CHECK(step.micro_batch.forward_s == 2);
    CHECK(step.sequences == 0.75);
    CHECK(step.timed_micro_batch == 1);
  }
  // Twice the share takes twice as long, without sums over micro-batches that the log would not have had.
  CHECK(profiled_gradients_s(1.5, 0.75, 6, 0) == 12);
}

TEST_CASE("the median step is that of whole steps, also where its parts vary against each other") {
  // Another program takes 10 s of each step, in either of its passes.
  ProfilePoint point{1, 8, false, 0, {{1, 12, 1}, {11, 2, 1}, {1, 12, 1}, {11, 2, 1}, {1, 12, 1}}};
  const StepSample middle = median_step(point);
  CHECK(middle.forward_s + middle.backward_s + middle.optimizer_s == doctest::Approx(14));
  point.samples = {{1, 2, 1}, {1, 2, 1}, {9, 2, 1}};
  CHECK(median_step(point).forward_s == doctest::Approx(1));
  CHECK(median_step(point).optimizer_s == doctest::Approx(1));
}

TEST_CASE("steps that take turns with other programs show how much of the time is beyond their fastest") {
  CHECK(beyond_fastest({}) == 0);
  CHECK(beyond_fastest({{1, 2, 1}, {1, 2, 1}}) == doctest::Approx(0));  // nothing that would show
  // 18 of 20 steps wait as long as they take. 20 undisturbed steps would have taken 20 · 4 s.
  std::vector<StepSample> steps = {{1, 2, 1}, {1, 2, 1}};
  for (int i = 0; i < 18; ++i) steps.push_back({2, 4, 2});
  CHECK(beyond_fastest(steps) == doctest::Approx(1 - 20 * 4.0 / (2 * 4 + 18 * 8)));
  steps.erase(steps.begin());  // one of 19 is less than a tenth: it may be a chance
  CHECK(beyond_fastest(steps) == doctest::Approx(0));
}

TEST_CASE("the origin of a step time says for how long it waited for cores and for the device") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  ProfiledCompute profiled{profile_of(scenario.model), 2};
  const auto origin = [&] {
    scenario.compute = profiled;
    return compute_times(scenario, 2).provenance.front().detail;
  };
  const std::string alone = origin();
  for (ProfilePoint& point : profiled.profile.points) point.waited_share = 0.004;
  CHECK(origin() == alone);
  profiled.profile.points.front().waited_share = 0.34;  // of the point that is used
  profiled.profile.points.front().device_waited_share = 0.256;
  CHECK(origin() ==
        alone +
            "; threads waited for a core 34 % of the time, and steps for the device at least 26 % "
            "of it (beyond the fastest tenth of the steps)");
  profiled.profile.points.front().waited_share.reset();
  profiled.profile.shared_device = true;
  CHECK(origin() ==
        alone +
            "; timed while other processes shared the device on purpose; steps waited for the device at "
            "least 26 % of the time (beyond the fastest tenth of the steps)");
  // Between two points it is the larger share.
  CHECK(estimate_step(profiled.profile, 2, 5, false).device_waited_share == 0.256);
  CHECK(estimate_step(profiled.profile, 2, 5, false).waited_share == 0.004);
}

TEST_CASE("a local batch is n micro-batches and one optimiser step") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.workload.global_batch_sequences = 13;  // the sites get 7 and 6
  scenario.compute = ProfiledCompute{profile_of(scenario.model), 2};
  CHECK(local_batch_sequences(scenario, 0) == 7);
  CHECK(compute_times(scenario, 7).gradients_s == doctest::Approx(3.5 * (9 + 17)));
  CHECK(compute_times(scenario, 6).gradients_s == doctest::Approx(3 * (9 + 17)));
  CHECK(compute_times(scenario, 6).optimizer_s == 5);
  CHECK(compute_times(scenario, 7).provenance.front().origin == Origin::measured);
}

TEST_CASE("with several micro-batches in a step, the gradients of each are added to the sums") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  ProfiledCompute profiled{profile_of(scenario.model), 2};
  for (ProfilePoint& point : profiled.profile.points) point.accumulation_s = 4;
  scenario.compute = profiled;
  scenario.workload.global_batch_sequences = 13;
  const ComputeTimes several = compute_times(scenario, 7), one = compute_times(scenario, 2);
  CHECK(several.gradients_s == doctest::Approx(3.5 * (9 + 17 + 4)));
  CHECK(one.gradients_s == doctest::Approx(9 + 17));
  CHECK(several.forward_s == doctest::Approx(3.5 * one.forward_s));  // sums belong to the backward pass
  const auto states_sums = [](const ComputeTimes& times) {
    for (const Provenance& entry : times.provenance)
      if (entry.what == "sums over micro-batches") return true;
    return false;
  };
  CHECK(states_sums(several));
  CHECK(!states_sums(one));
}

TEST_CASE("a profile of another model is refused") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  ModelShape other = scenario.model;
  other.sequence_length = 11;
  scenario.compute = ProfiledCompute{profile_of(other), 2};
  CHECK_THROWS_AS(compute_times(scenario, 7), InputError);
  other = scenario.model;
  other.name = "the same under another name";
  scenario.compute = ProfiledCompute{profile_of(other), 2};
  CHECK_NOTHROW(compute_times(scenario, 7));
}

TEST_CASE("an assumed device: FLOPs ÷ (MFU · peak), marked assumed") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.compute = AssumedDevice{1e12, 0.4};
  scenario.gpus.count = 8;
  const double flops = flops_per_token(scenario.model, 8, false, FlopsAccounting::mechanism).total();
  CHECK(compute_times(scenario, 1).gradients_s == doctest::Approx(flops * 10 / (0.4 * 1e12 * 8)));
  CHECK(compute_times(scenario, 1).provenance.front().origin == Origin::assumed);
}

TEST_CASE("the outer step that a profile measured takes the place of the one from bytes, without payloads") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.gpus.memory_bytes_per_s = 1e12;
  ProfiledCompute profiled{profile_of(scenario.model), 2};
  scenario.compute = profiled;
  const double by_bytes_s = compute_times(scenario, 2).outer_step_s;
  profiled.profile.synchronisation = SynchronisationTimes{{{ElementType::bf16, 2e9}}, 1e-3};
  scenario.compute = profiled;
  const auto parameters = static_cast<double>(count_parameters(scenario.model).total());
  CHECK(compute_times(scenario, 2).outer_step_s == doctest::Approx(1e-3 * parameters));
  CHECK(by_bytes_s < 1e-3 * parameters);
  scenario.gpus.memory_bytes_per_s = 0;  // it needs no bandwidth
  const ComputeTimes times = compute_times(scenario, 2);
  CHECK(times.outer_step_s == doctest::Approx(1e-3 * parameters));
  const auto origin_of = [&](const std::string& what) -> std::optional<Origin> {
    for (const Provenance& entry : times.provenance)
      if (entry.what == what) return entry.origin;
    return std::nullopt;
  };
  CHECK(origin_of("outer step time") == Origin::measured);
  CHECK(origin_of("encoding of payloads") == Origin::assumed);  // nobody gave the network model a rate
  scenario.strategy.method = find_method("ddp");
  CHECK(compute_times(scenario, 2).outer_step_s == 0);
}

TEST_CASE("the rate of payloads is that of their format; fp16 takes as long as bf16") {
  StepProfile profile = profile_of(tests::ideal_scenario("diloco", 2).model);
  CHECK(!payload_bytes_per_s(profile, plain_format(ElementType::bf16), 1));
  profile.synchronisation = SynchronisationTimes{{{ElementType::bf16, 2e9}, {ElementType::int8, 5e8}}, 0};
  CHECK(payload_bytes_per_s(profile, plain_format(ElementType::bf16), 1) == 2e9);
  CHECK(payload_bytes_per_s(profile, plain_format(ElementType::fp16), 1) == 2e9);
  CHECK(payload_bytes_per_s(profile, plain_format(ElementType::int8), 1) == 5e8);
  CHECK(!payload_bytes_per_s(profile, plain_format(ElementType::fp8), 1));
  CHECK(!payload_bytes_per_s(profile, top_k_format(ElementType::bf16, 0.01, 12), 1));
  // Choosing takes 12 ns for each element, once for all; adding what one site sends takes 8 ns. Of 100
  // elements, one is sent as 16 + 12 bits.
  profile.synchronisation->sparse = {12e-9, 8e-9};
  for (const int others : {1, 3}) {
    CHECK(*payload_bytes_per_s(profile, top_k_format(ElementType::bf16, 0.01, 12), others) ==
          doctest::Approx(others * 0.01 * 28 / 8 / (12e-9 + others * 8e-9)));
  }
}
