// Tests partial replicas at three sites, which cannot divide 8 experts: sites hold 5 or 6 of a layer, in
// turn.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "tests/trainer/run/training_case.hpp"
#include "trainer/execution/checkpoints.hpp"
#include "trainer/whole/evaluation.hpp"
#include "trainer/whole/exported_model.hpp"
#include "trainer/whole/gathering.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;
namespace fs = std::filesystem;

namespace {

costmodel::Scenario at_three_sites(costmodel::PlacementKind placement, bool skip_token, int overlap = 2) {
  costmodel::Scenario scenario = training_scenario("fomoe", 3, overlap);
  scenario.model.experts = 8;
  scenario.workload = {12 * 9 * scenario.model.sequence_length, 9};
  scenario.strategy.placement = placement;
  scenario.strategy.skip_token = skip_token;
  return scenario;
}

void check_bytes(Training& training) {
  training.executor.finish();
  const std::vector<Traffic> planned = planned_traffic(training.plan);
  for (std::size_t node = 0; node < 3; ++node)
    check_traffic(training.transport.traffic(static_cast<costmodel::NodeId>(node)), planned[node]);
}

struct Directory {
  Directory() : path((fs::temp_directory_path() / ("fomoe-uneven-" + std::to_string(::getpid()))).string()) {}
  // std::filesystem::remove_all crashes in programs that link LibTorch, which has a copy of it.
  ~Directory() { (void)!std::system(("rm -rf " + path).c_str()); }
  std::string path;
};

}  // namespace

TEST_CASE("8 experts at three sites: trained, resumed and exported, with the plan's bytes") {
  using enum costmodel::PlacementKind;
  for (const auto placement : {fixed, random}) {
    for (const bool skip_token : {false, true}) {
      for (const int overlap : {1, 2}) {
        CAPTURE(to_string(placement));
        CAPTURE(skip_token);
        CAPTURE(overlap);
        const costmodel::Scenario scenario = at_three_sites(placement, skip_token, overlap);
        const Directory directory;
        Training whole(scenario, real_options()), first(scenario, real_options());
        for (int node = 0; node < 3; ++node) {
          for (int layer = 0; layer < 2; ++layer) {
            const std::size_t copies = 8 * static_cast<std::size_t>(overlap);
            const at::Tensor up = whole.tensor(node, "layers." + std::to_string(layer) + ".up");
            const bool more = overlap == 2 ? node == layer : node != 2 - layer;
            CHECK(up.size(0) == static_cast<std::int64_t>(copies / 3 + (more ? 1 : 0)));
          }
        }
        whole.run();
        check_bytes(whole);
        first.run(1);
        Checkpoints checkpoints(directory.path, {});
        checkpoints.save(first.executor, 1);
        checkpoints.wait();
        Training second(scenario, real_options());
        checkpoints.load(second.executor, 1);
        second.executor.resume_at(1, 4);
        second.next_round = 1;
        second.run();
        for (int node = 0; node < 3; ++node) {
          CHECK(at::equal(second.weights(node), whole.weights(node)));
          CHECK(std::isfinite(whole.weights(node).sum().item<double>()));
          const double loss = validation_loss(whole.executor.worker(node).model(), whole.batches, 8);
          CHECK(std::isfinite(loss));
        }
        const auto gathered =
            gather_whole(whole.executor, whole.transport, whole.plan.placement(whole.plan.rounds));
        REQUIRE(gathered.has_value());
        CHECK(gathered->tensors.at("layers.1.up").size(0) == 8);
        write_exported(*gathered, directory.path + "/exported");
        const WholeModel back = read_exported(directory.path + "/exported");
        CHECK(largest_difference(back.tensors.at("layers.0.down"), gathered->tensors.at("layers.0.down")) <
              1e-6);
      }
    }
  }
}

TEST_CASE("8 experts at three sites, each at all of them: the same weights as with full replicas") {
  for (const bool skip_token : {false, true}) {
    costmodel::Scenario partial = at_three_sites(costmodel::PlacementKind::random, skip_token, 3);
    costmodel::Scenario full = partial;
    full.strategy.method = costmodel::find_method("diloco");
    Training a(partial, exact_options()), b(full, exact_options());
    a.run();
    b.run();
    CHECK(farthest_weights(a, b) < 1e-12);
  }
}

TEST_CASE("8 experts at three sites: a reassigned expert restarts its moments, others keep them") {
  costmodel::Scenario scenario = at_three_sites(costmodel::PlacementKind::random, false);
  Training training(scenario, exact_options());
  training.run(1);
  const costmodel::Placement from = training.plan.placement(0), to = training.plan.placement(1);
  int moved = 0, stayed = 0;
  for (int layer = 0; layer < 2; ++layer) {
    for (int node = 0; node < 3; ++node) {
      const std::vector<int> before = from.local_experts(layer, node), after = to.local_experts(layer, node);
      REQUIRE(before.size() == after.size());
      const at::Tensor moments = training.tensor(node, "layers." + std::to_string(layer) + ".up.moment2");
      for (std::size_t row = 0; row < after.size(); ++row) {
        const bool kept = std::find(before.begin(), before.end(), after[row]) != before.end();
        const ExpertSteps steps =
            training.executor.worker(node).inner().experts()[static_cast<std::size_t>(layer)][row];
        CHECK(steps.moments == (kept ? 4 : 0));
        if (!kept) CHECK(moments[static_cast<std::int64_t>(row)].count_nonzero().item<std::int64_t>() == 0);
        (kept ? stayed : moved) += 1;
      }
    }
  }
  CHECK(moved > 0);
  CHECK(stayed > 0);
}
