// Tests of DeMo: the largest coefficients of the momentum, from every site to every other one.
#include <doctest/doctest.h>

#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/plan/method.hpp"
#include "tests/memory_of.hpp"
#include "tests/plan_bytes.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("demo: the traffic per step of the paper's table, in MB") {
  // Peng et al. 2024, table of OLMo models, as two secondary sources state it. OLMo-1B has 16 layers of width
  // 2048 with 8192 hidden elements and three matrices, and a vocabulary of 50,304; OLMo-300M half the widths.
  const auto elements = [](std::int64_t d, std::int64_t hidden) {
    return 16 * (4 * d * d + 3 * d * hidden) + 50304 * d;
  };
  struct Row {
    std::int64_t parameters;
    int kept;
    double megabytes;
  };
  for (const Row& row : {Row{elements(2048, 8192), 32, 110.32}, Row{elements(2048, 8192), 16, 55.16},
                         Row{elements(2048, 8192), 2, 6.89}, Row{elements(1024, 4096), 8, 7.49},
                         Row{elements(1024, 4096), 1, 0.93}}) {
    const WireFormat format = top_k_format(ElementType::fp32, row.kept / 4096.0, 64);
    CHECK(static_cast<double>(format.bytes(row.parameters)) / 1e6 ==
          doctest::Approx(row.megabytes).epsilon(0.01));  // the table is cut after two decimals
  }
  CHECK(find_method("demo")->usual_wire == top_k_format(ElementType::fp32, 32.0 / 4096, 64));
}

TEST_CASE("demo: every site's coefficients go to all others, in every step") {
  for (const int sites : {2, 4, 8}) {
    Scenario scenario = tests::ideal_scenario("demo", sites);
    scenario.strategy.wire = *find_method("demo")->usual_wire;
    const auto parameters = static_cast<double>(count_parameters(scenario.model).total());
    CHECK(tests::sent_in_round(tests::plan_of(scenario), sites, 0).total() ==
          doctest::Approx((sites - 1) * parameters * 32 / 4096 * 12).epsilon(1e-4));
    CHECK(closed_form(scenario).round.count == 60);
  }
}

TEST_CASE("demo keeps one momentum of 4 B per parameter instead of 8 B of moments") {
  const MemoryBytes demo = memory_per_gpu(tests::ideal_scenario("demo", 4)),
                    ddp = memory_per_gpu(tests::ideal_scenario("ddp", 4));
  CHECK(demo.moments == ddp.moments / 2);
  CHECK(ddp.total() - demo.total() == ddp.moments / 2);
}
