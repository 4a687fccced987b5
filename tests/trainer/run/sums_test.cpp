// Tests recursive and hierarchical sums in whole trainings: they give the means of direct exchange and send
// the plan's bytes.
#include "platforms/support/input_error.hpp"
#include "tests/trainer/run/mailbox.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;
using costmodel::Collective;

namespace {

struct SumCase {
  const char* method;
  int sites;
  Collective collective;
  int regions = 1;
  int overlap = 0;
};

costmodel::Scenario scenario_of(const SumCase& one) {
  costmodel::Scenario scenario = training_scenario(one.method, one.sites, one.overlap);
  scenario.strategy.collective = one.collective;
  scenario.strategy.regions = one.regions;
  // Recursive halving works for sums only, so its cases have no migration.
  if (one.overlap > 0 && one.collective != Collective::recursive)
    scenario.strategy.placement = costmodel::PlacementKind::random;
  return scenario;
}

costmodel::Scenario directly(costmodel::Scenario scenario) {
  scenario.strategy.collective = Collective::direct;
  return scenario;
}

// 8 sequences among 6 sites give shares of 2 and 1, so gradients have different weights, across regions too.
const std::vector<SumCase>& cases() {
  static const std::vector<SumCase> all = {
      {"ddp", 2, Collective::recursive},
      {"ddp", 4, Collective::recursive},
      {"diloco", 8, Collective::recursive},
      {"local_adamw", 4, Collective::recursive},
      {"fomoe", 4, Collective::recursive, 1, 2},
      {"ddp", 4, Collective::hierarchical, 2},
      {"ddp", 6, Collective::hierarchical, 2},
      {"ddp", 6, Collective::hierarchical, 3},
      {"diloco", 6, Collective::hierarchical, 3},
      {"local_sgd", 8, Collective::hierarchical, 4},
      {"local_adamw", 4, Collective::hierarchical, 2},
      // Owners that regions do not divide evenly use a ring, beside others that are divided.
      {"fomoe", 4, Collective::hierarchical, 2, 2},
      {"fomoe", 8, Collective::hierarchical, 2, 4},
  };
  return all;
}

}  // namespace

TEST_CASE(
    "recursive and hierarchical sums train as direct exchange does, in fp64, with the same bits at all") {
  for (const SumCase& one : cases()) {
    CAPTURE(std::string(one.method));
    CAPTURE(one.sites);
    CAPTURE(one.regions);
    const costmodel::Scenario scenario = scenario_of(one);
    Training training(scenario, exact_options()), direct(directly(scenario), exact_options());
    training.run();
    direct.run();
    // A sum has a relative error of 1e-12 (../comm/collectives_test.cpp). ddp divides the sum by the root of
    // its own square, twelve times in a row, so its error is that of one site with the whole batch.
    CHECK(farthest_weights(training, direct) < (std::string(one.method) == "ddp" ? 1e-10 : 1e-12));
    for (int node = 1; one.overlap == 0 && node < one.sites; ++node)
      CHECK(at::equal(training.weights(node), training.weights(0)));
  }
}

TEST_CASE("each site sends what the plan says, by class and to whom, on coarse wires too") {
  using costmodel::ElementType;
  for (const SumCase& one : cases()) {
    for (const auto type : {ElementType::bf16, ElementType::int8}) {
      CAPTURE(std::string(one.method));
      CAPTURE(one.sites);
      CAPTURE(one.regions);
      costmodel::Scenario scenario = scenario_of(one);
      scenario.strategy.wire = costmodel::plain_format(type);
      Training training(scenario, real_options());
      training.run();
      const std::vector<Traffic> planned = planned_traffic(training.plan);
      for (int node = 0; node < one.sites; ++node) {
        check_traffic(training.transport.traffic(node), planned[static_cast<std::size_t>(node)]);
        if (one.overlap == 0) CHECK(at::equal(training.weights(node), training.weights(0)));
      }
    }
  }
}

TEST_CASE("sites at once: the bits of one process in turn") {
  for (const SumCase& one : cases()) {
    CAPTURE(std::string(one.method));
    CAPTURE(one.sites);
    CAPTURE(one.regions);
    const costmodel::Scenario scenario = scenario_of(one);
    Mailbox mailbox;
    const Sites sites = sites_of(scenario, real_options(), mailbox);
    run(sites);
    check_as_in_turn(sites, scenario);
  }
}

TEST_CASE("regions: a fragment's three transfers follow each other while the site trains on") {
  costmodel::Scenario scenario = training_scenario("streaming_diloco", 4);  // 3 rounds of 4 steps
  scenario.strategy.collective = Collective::hierarchical;
  scenario.strategy.regions = 2;
  scenario.strategy.fragments = 2;
  scenario.strategy.overlap_steps = 2;
  constexpr std::int64_t kOverlap = 2, kSteps = 12;
  Mailbox mailbox;
  std::map<int, std::int64_t> steps;  // by site
  // Fragments are sent after steps 2, 4, 6 …, with three transfers each. The messages of the first transfer
  // do not arrive before the site has made one more step, and those of the last transfer not before it has
  // made all steps that the overlap allows.
  mailbox.opens = [&](int site, int channel) {
    const std::int64_t sent_at = 2 * (channel / 3 + 1), hidden = channel % 3 == 0 ? 1 : kOverlap;
    return steps[site] >= std::min(sent_at + hidden, kSteps);
  };
  const Sites sites = sites_of(scenario, real_options(), mailbox);
  for (const auto& site : sites) {
    site->executor.on_step = [&](const StepRecord& record) {
      mailbox.changed([&] { steps[record.node] = record.step + 1; });
    };
  }
  run(sites);
  check_as_in_turn(sites, scenario);
  for (const auto& site : sites) REQUIRE(site->transfers.size() == 3 * 6);

  // What is merged was read before the overlapping steps, as with a single transfer.
  Training regions(scenario, exact_options()), direct(directly(scenario), exact_options());
  regions.run();
  direct.run();
  regions.executor.finish();
  direct.executor.finish();
  CHECK(farthest_weights(regions, direct) < 1e-12);
}

TEST_CASE(
    "the pieces of a payload have no chunks to pass between regions: refused, and what to say instead") {
  costmodel::Scenario scenario = scenario_of({"diloco", 4, Collective::hierarchical, 2});
  scenario.strategy.bucket_bytes = 1000;
  try {
    Training training(scenario, real_options());
    FAIL("not refused");
  } catch (const fomoe::InputError& error) {
    const std::string said = error.what();
    CHECK(said.find("strategy.bucket_bytes: got 1000B") != std::string::npos);
    CHECK(said.find("hierarchical") != std::string::npos);
  }
}

TEST_CASE("methods that wait for others in the midst of a step are refused, whatever their sums") {
  for (const char* method : {"fsdp", "pipeline_wan", "expert_parallel_wan", "remote_experts"}) {
    for (const Collective collective : {Collective::ring, Collective::direct, Collective::recursive}) {
      for (const std::int64_t bucket_bytes : {0, 1000}) {
        CAPTURE(std::string(method));
        costmodel::Scenario scenario = training_scenario(method, 4);
        scenario.strategy.collective = collective;
        scenario.strategy.bucket_bytes = bucket_bytes;
        try {
          (void)needs_of(scenario, costmodel::make_plan(scenario));
          FAIL("not refused");
        } catch (const fomoe::InputError& error) {
          CHECK(std::string(error.what()).starts_with("strategy.method: got \"" + std::string(method) + '"'));
        }
      }
    }
  }
}
