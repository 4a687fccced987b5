// Tests of the times of AdamW and the outer step, which memory limits.
#include "costmodel/compute/state_updates.hpp"

#include <doctest/doctest.h>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/methods/all.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

// A GPU whose memory moves 1 TB/s, and whose step time does not include the optimiser.
Scenario priced(const char* method) {
  Scenario scenario = tests::ideal_scenario(method, 4);
  scenario.compute = AssumedDevice{1e15, 0, 0.5};
  scenario.gpus.memory_bytes_per_s = 1e12;
  return scenario;
}

double parameters(const Scenario& scenario) {
  return static_cast<double>(count_parameters(scenario.model).total());
}

}  // namespace

TEST_CASE("AdamW takes 30 B per parameter, of the GPUs that share a replica") {
  Scenario scenario = priced("diloco");
  const double all = parameters(scenario);
  CHECK(compute_times(scenario, 1).optimizer_s == doctest::Approx(30 * all / 1e12).epsilon(1e-12));
  scenario.gpus.count = scenario.gpus.sharded = 4;
  CHECK(compute_times(scenario, 1).optimizer_s == doctest::Approx(30 * all / 4e12).epsilon(1e-12));
  scenario.gpus.sharded = 1;  // four replicas
  CHECK(compute_times(scenario, 1).optimizer_s == doctest::Approx(30 * all / 1e12).epsilon(1e-12));
}

TEST_CASE("AdamW is part of a given step time and of an MFU, and unknown without a memory bandwidth") {
  Scenario scenario = priced("diloco");
  scenario.compute = AssumedDevice{1e15, 0.5, 0};
  CHECK(compute_times(scenario, 1).optimizer_s == 0);
  scenario.compute = GivenStepTime{1};
  CHECK(compute_times(scenario, 1).optimizer_s == 0);
  scenario = priced("diloco");
  scenario.gpus.memory_bytes_per_s = 0;
  const ComputeTimes unknown = compute_times(scenario, 1);
  CHECK(unknown.optimizer_s + unknown.outer_step_s == 0);
  int said = 0;
  for (const Provenance& row : unknown.provenance)
    said += row.what == "inner optimiser" || row.what == "outer step time"
                ? static_cast<int>(row.origin == Origin::assumed)
                : 0;
  CHECK(said == 2);
}

TEST_CASE("the outer step of diloco: 12 + 10 + 2·8 B, and 2·(4 + 2) B for the payloads in bf16") {
  Scenario scenario = priced("diloco");
  const double all = parameters(scenario);
  CHECK(compute_times(scenario, 1).outer_step_s == doctest::Approx((38 + 12) * all / 1e12).epsilon(1e-12));
  scenario.strategy.wire = plain_format(ElementType::fp32);
  CHECK(compute_times(scenario, 1).outer_step_s == doctest::Approx((38 + 16) * all / 1e12).epsilon(1e-12));
  scenario.strategy.wire = plain_format(ElementType::bf16);
  scenario.strategy.outer_optimizer = OuterOptimizer::adam;
  CHECK(compute_times(scenario, 1).outer_step_s == doctest::Approx((46 + 12) * all / 1e12).epsilon(1e-12));
  scenario.strategy.outer_optimizer = OuterOptimizer::nesterov;
  scenario.gpus.outer_state_on = OuterStateOn::host;  // 8 B to the GPU and back, at 25 GB/s
  CHECK(compute_times(scenario, 1).outer_step_s ==
        doctest::Approx(50 * all / 1e12 + 16 * all / 25e9).epsilon(1e-12));
}

TEST_CASE("payloads of an outer step: parameters keep 16 bits where differences have 8") {
  const auto bytes_per_parameter = [](const char* method) {
    Scenario scenario = priced(method);
    scenario.strategy.wire = plain_format(ElementType::int8);
    return compute_times(scenario, 1).outer_step_s * 1e12 / parameters(scenario);
  };
  const double int8 = 4 + plain_format(ElementType::int8).bytes_per_element(), bf16 = 4 + 2;
  CHECK(bytes_per_parameter("diloco") == doctest::Approx(38 + 2 * int8).epsilon(1e-12));
  CHECK(bytes_per_parameter("gossip") == doctest::Approx(38 + 2 * bf16).epsilon(1e-12));
  CHECK(bytes_per_parameter("noloco") == doctest::Approx(38 + 2 * int8 + 2 * bf16).epsilon(1e-12));
  CHECK(bytes_per_parameter("fedavg") == doctest::Approx(30 + int8 + bf16).epsilon(1e-12));
}

TEST_CASE(
    "the outer step and AdamW lengthen a run: a round of diloco has K of the one and one of the other") {
  Scenario scenario = priced("diloco"), free = scenario;
  free.gpus.memory_bytes_per_s = 0;
  const double all = parameters(scenario);
  CHECK(closed_form(scenario).round.duration_s - closed_form(free).round.duration_s ==
        doctest::Approx((5 * 30 + 50) * all / 1e12).epsilon(1e-9));
}

TEST_CASE("fsdp updates 1/M of the parameters at each site, and divides them among its GPUs") {
  Scenario scenario = priced("fsdp");
  scenario.gpus.count = 2;
  Scenario free = scenario;
  free.gpus.memory_bytes_per_s = 0;
  CHECK(closed_form(scenario).round.duration_s - closed_form(free).round.duration_s ==
        doctest::Approx(30 * parameters(scenario) / 4 / 2 / 1e12).epsilon(1e-6));
}
