// Tests fomoe in fragments in training: dense parts and experts of some layers are averaged in turn, and
// arrive while the sites train on.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "costmodel/methods/all.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/trainer/run/mailbox.hpp"
#include "tests/trainer/run/training_case.hpp"
#include "trainer/execution/checkpoints.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

/// 3 rounds of 4 steps; layer 0 is sent after step 2, and layer 1 with the embedding after step 4.
costmodel::Scenario fragments_of_fomoe(int overlap, std::int64_t overlap_steps) {
  costmodel::Scenario scenario = training_scenario("fomoe", 4, overlap);
  scenario.strategy.fragments = 2;
  scenario.strategy.overlap_steps = overlap_steps;
  return scenario;
}

struct FragmentsFolder {
  std::string path =
      (std::filesystem::temp_directory_path() / ("fomoe-fragments-" + std::to_string(::getpid()))).string();
  FragmentsFolder() = default;
  // std::filesystem::remove_all crashes in programs that link LibTorch, which has a copy of it.
  ~FragmentsFolder() { (void)!std::system(("rm -rf " + path).c_str()); }
  FragmentsFolder(const FragmentsFolder&) = delete;
  FragmentsFolder& operator=(const FragmentsFolder&) = delete;
};

/// What a node has of one expert's up-projection; undefined if it does not hold the expert.
at::Tensor up_of_expert(Training& training, int node, int layer, int expert, const std::string& state) {
  const std::vector<int> local =
      local_experts(training.scenario.model, training.executor.worker(node).model().options().experts, layer);
  const auto row = std::find(local.begin(), local.end(), expert);
  if (row == local.end()) return {};
  return training.tensor(node, "layers." + std::to_string(layer) + ".up" + state)
      .select(0, row - local.begin());
}

/// Whether all owners of each expert of the layer agree on this part of its state.
bool owners_agree(Training& training, int layer, const std::string& state) {
  bool agree = true;
  for (int expert = 0; expert < static_cast<int>(training.scenario.model.experts); ++expert) {
    at::Tensor first;
    for (int node = 0; node < 4; ++node) {
      const at::Tensor own = up_of_expert(training, node, layer, expert, state);
      if (!own.defined()) continue;
      if (first.defined()) agree = agree && at::equal(own, first);
      first = own;
    }
  }
  return agree;
}

}  // namespace

TEST_CASE("fomoe in fragments, sites at once: the bits of one process in turn") {
  for (const int overlap : {1, 2}) {
    for (const bool random : {false, true}) {
      for (const auto type : {costmodel::ElementType::fp32, costmodel::ElementType::int8}) {
        costmodel::Scenario scenario = fragments_of_fomoe(overlap, 1);
        scenario.strategy.wire = costmodel::plain_format(type);
        scenario.strategy.reshuffle_rounds = 2;  // after the second of three rounds
        if (random) scenario.strategy.placement = costmodel::PlacementKind::random;
        CAPTURE(overlap);
        CAPTURE(random);
        CAPTURE(std::string(to_string(type)));
        Mailbox mailbox;
        const Sites sites = sites_of(scenario, real_options(), mailbox);
        run(sites);
        check_as_in_turn(sites, scenario);
        const std::vector<Traffic> planned = planned_traffic(sites[0]->plan);
        for (const auto& site : sites)
          CHECK(site->transport.traffic(site->node).sent ==
                planned[static_cast<std::size_t>(site->node)].sent);
      }
    }
  }
}

TEST_CASE("fomoe in fragments with all experts everywhere trains as streaming_diloco does") {
  for (const std::int64_t overlap_steps : {0, 2}) {
    const costmodel::Scenario fomoe = fragments_of_fomoe(4, overlap_steps);
    costmodel::Scenario streaming = fomoe;
    streaming.strategy.method = costmodel::find_method("streaming_diloco");
    Training a(fomoe, real_options()), b(streaming, real_options());
    a.run();
    b.run();
    for (int node = 0; node < 4; ++node) CHECK(at::equal(a.weights(node), b.weights(node)));
  }
}

TEST_CASE("fomoe in fragments: the owners of an expert apply the same average, a lone owner its own") {
  for (const bool random : {false, true}) {
    for (const int overlap : {1, 2}) {
      costmodel::Scenario scenario = fragments_of_fomoe(overlap, 1);
      if (random) scenario.strategy.placement = costmodel::PlacementKind::random;
      scenario.strategy.reshuffle_rounds = 2;
      CAPTURE(random);
      CAPTURE(overlap);
      Training training(scenario, real_options()), start(scenario, real_options());
      for (std::int64_t round = 0; round < training.plan.rounds; ++round) {
        training.run(1);
        for (const char* state : {".anchor", ".outer1"}) {
          for (const int layer : {0, 1}) CHECK(owners_agree(training, layer, state));
          CHECK(at::equal(training.tensor(3, std::string("layers.0.qkv") + state),
                          training.tensor(0, std::string("layers.0.qkv") + state)));
        }
        // The outer step of layer 0 has been applied, and that of layer 1 has not been until the next round.
        if (round > 0) continue;
        const at::Tensor merged = training.tensor(0, "layers.0.up.anchor"),
                         travels = training.tensor(0, "layers.1.up.anchor");
        CHECK(!at::equal(merged, start.tensor(0, "layers.0.up.anchor")));
        CHECK(at::equal(travels, start.tensor(0, "layers.1.up.anchor")));
      }
      // After the migration at the end of round 1, nothing was in flight, and round 2 went on from there.
      if (random && overlap == 2) CHECK(training.plan.round(1).ops.back().name == "migrate experts");
      training.executor.finish();
    }
  }
}

TEST_CASE("fomoe in fragments: a lone owner's outer step is that of its difference when the fragment left") {
  // Nothing overlaps, so that the step is exact: anchor − 0.7·1.9·(anchor − θ). A coarse wire does not change
  // what is not sent.
  costmodel::Scenario scenario = fragments_of_fomoe(1, 0);
  scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::int4);
  costmodel::Scenario plain = scenario;  // parameters are averaged in place of an outer step
  plain.strategy.outer_optimizer = costmodel::OuterOptimizer::average;
  plain.strategy.local_steps = 2;
  plain.strategy.fragments = 1;
  TrainingOptions options = exact_options();
  options.exact_wire = false;
  Training training(scenario, options), trained(plain, options);
  const at::Tensor start = training.tensor(0, "layers.0.up").clone();
  training.run(1);
  trained.run(1);
  const at::Tensor expected = start - 0.7 * 1.9 * (start - trained.tensor(0, "layers.0.up"));
  CHECK(largest_difference(training.tensor(0, "layers.0.up.anchor"), expected) < 1e-13);
  CHECK(training.tensor(0, "layers.0.up.residual").abs().max().item<double>() == 0);
  CHECK(training.tensor(0, "layers.0.qkv.residual").abs().max().item<double>() > 0);
}

TEST_CASE(
    "fomoe in fragments, with parameters and both moments: fragments agree when they have been averaged") {
  costmodel::Scenario scenario = fragments_of_fomoe(2, 0);
  scenario.strategy.outer_optimizer = costmodel::OuterOptimizer::local_adamw;
  Training training(scenario, real_options());
  training.run(1);
  for (const char* state : {"", ".moment1", ".moment2"}) {
    CHECK(owners_agree(training, 1, state));   // averaged after the last step
    CHECK(!owners_agree(training, 0, state));  // two steps before
  }
}

TEST_CASE(
    "a checkpoint has the fragments that are in flight; a run that goes on from it ends in the same bits") {
  for (const char* method : {"fomoe", "streaming_diloco"}) {
    for (const auto collective : {costmodel::Collective::direct, costmodel::Collective::hierarchical}) {
      for (const std::int64_t overlap_steps : {1, 4}) {
        costmodel::Scenario scenario = fragments_of_fomoe(2, overlap_steps);
        scenario.strategy.method = costmodel::find_method(method);
        scenario.strategy.collective = collective;
        if (collective == costmodel::Collective::hierarchical) scenario.strategy.regions = 2;
        scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::int8);
        if (std::string(method) == "fomoe") {
          scenario.strategy.placement = costmodel::PlacementKind::random;
          scenario.strategy.reshuffle_rounds = 2;
        }
        CAPTURE(std::string(method));
        CAPTURE(std::string(to_string(collective)));
        CAPTURE(overlap_steps);
        Training whole(scenario, real_options()), saved(scenario, real_options());
        whole.run();
        whole.executor.finish();
        const FragmentsFolder directory;
        Checkpoints checkpoints(directory.path, {});
        for (std::int64_t round = 1; round < 3; ++round) {  // nothing is in flight after a migration
          saved.run(1);
          checkpoints.save(saved.executor, round);
          checkpoints.wait();
          Training again(scenario, real_options());
          checkpoints.load(again.executor, round);
          again.next_round = round;
          again.run();
          again.executor.finish();
          for (int node = 0; node < 4; ++node) {
            CHECK(at::equal(again.weights(node), whole.weights(node)));
            CHECK(at::equal(again.tensor(node, "embedding.anchor"), whole.tensor(node, "embedding.anchor")));
          }
        }
        // The checkpoint changes nothing of the run that writes it.
        saved.run();
        for (int node = 0; node < 4; ++node) CHECK(at::equal(saved.weights(node), whole.weights(node)));
      }
    }
  }
}

TEST_CASE("a checkpoint without the fragments that are in flight is refused") {
  costmodel::Scenario waits = fragments_of_fomoe(2, 0), overlaps = fragments_of_fomoe(2, 1);
  Training without(waits, real_options()), with(overlaps, real_options());
  const FragmentsFolder directory;
  Checkpoints checkpoints(directory.path, {});
  without.run(1);
  checkpoints.save(without.executor, 1);
  checkpoints.wait();
  Training into(overlaps, real_options());
  CHECK_THROWS_WITH_AS(checkpoints.load(into.executor, 1), doctest::Contains("is missing"), fomoe::FileError);
  with.run(1);
  checkpoints.save(with.executor, 1);
  checkpoints.wait();
  Training other(waits, real_options());
  CHECK_THROWS_WITH_AS(checkpoints.load(other.executor, 1), doctest::Contains("transfers under way"),
                       fomoe::FileError);
}
