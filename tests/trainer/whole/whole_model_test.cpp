// Tests how the experts of all sites become one model, and how a site gets its part of it.
#include "trainer/whole/whole_model.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "platforms/support/input_error.hpp"
#include "tests/trainer/run/training_case.hpp"
#include "trainer/execution/checkpoints.hpp"
#include "trainer/whole/checkpointed_model.hpp"
#include "trainer/whole/evaluation.hpp"
#include "trainer/whole/exported_model.hpp"
#include "trainer/whole/gathering.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;
namespace fs = std::filesystem;

namespace {

WholeModel assembled(Training& training) {
  Assembly assembly(training.scenario.model, training.scenario.strategy.skip_token);
  for (const costmodel::NodeId node : training.executor.hosted()) {
    Worker& worker = training.executor.worker(node);
    assembly.add(worker.model().options().experts, worker.state(), worker.inner().experts());
  }
  return assembly.finish();
}

/// Every parameter of every node equals its part of the whole model.
void check_parts(Training& training, const WholeModel& whole) {
  for (const costmodel::NodeId node : training.executor.hosted()) {
    const Model& model = training.executor.worker(node).model();
    for (const Parameter& parameter : model.parameters()) {
      CAPTURE(parameter.spec.name());
      CHECK(at::equal(parameter.master.detach(),
                      part_of(whole.tensors.at(parameter.spec.name()), parameter.spec, model.shape(),
                              model.options().experts)));
    }
  }
}

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("fomoe-whole-" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  // std::filesystem::remove_all crashes in programs that link LibTorch, which has a copy of it.
  ~Folder() { (void)!std::system(("rm -r " + path.string()).c_str()); }
  fs::path path;
};

costmodel::Scenario random_experts(bool skip_token) {
  costmodel::Scenario scenario = training_scenario("fomoe", 4, 2);
  scenario.strategy.placement = costmodel::PlacementKind::random;
  scenario.strategy.skip_token = skip_token;
  return scenario;
}

}  // namespace

TEST_CASE("the whole model has every expert as its owners have it; each site's part is the site's") {
  for (const bool skip_token : {false, true}) {
    Training training(random_experts(skip_token), real_options());
    training.run(2);
    const WholeModel whole = assembled(training);
    check_parts(training, whole);
    for (const std::string& name : whole.averaged) {
      CAPTURE(name);
      CHECK(name.find(".moment") != std::string::npos);
    }
    const auto& up = whole.tensors.at("layers.1.up");
    CHECK(up.size(0) == training.scenario.model.experts);
    CHECK(up.abs().sum().item<double>() > 0);

    const auto gathered = gather_whole(training.executor, training.transport, training.plan.placement(2));
    REQUIRE(gathered.has_value());
    for (const auto& [name, tensor] : gathered->tensors) CHECK(at::equal(tensor, whole.tensors.at(name)));
    CHECK(gathered->tensors.size() == parameter_specs(training.scenario.model, {{}, skip_token}).size());
  }
}

TEST_CASE("sites that differ between two rounds: the gathered model has the means, as an export has") {
  costmodel::Scenario scenario = training_scenario("fomoe", 4, 2);
  scenario.strategy.fragments = 2;
  scenario.strategy.overlap_steps = 2;
  Training training(scenario, real_options());
  training.run(2);
  const WholeModel whole = assembled(training);
  CHECK(std::any_of(whole.averaged.begin(), whole.averaged.end(),
                    [](const std::string& name) { return name == "embedding"; }));
  const auto gathered =
      gather_whole(training.executor, training.transport, training.plan.placement(2), {}, true);
  REQUIRE(gathered.has_value());
  for (const auto& [name, tensor] : gathered->tensors) {
    CAPTURE(name);
    CHECK(at::allclose(tensor, whole.tensors.at(name), 1e-6, 1e-7));
  }
}

TEST_CASE("bytes that put the whole model together are not those of the plan") {
  Training training(random_experts(false), real_options());
  training.run(1);
  const std::int64_t before = training.transport.traffic(1).total_sent();
  (void)gather_whole(training.executor, training.transport, training.plan.placement(1));
  CHECK(training.transport.traffic(1).total_sent() == before);
}

TEST_CASE("with full replicas, the whole model is every site's, with the same loss") {
  Training training(training_scenario("diloco", 3), real_options());
  training.run();
  const WholeModel whole = assembled(training);
  check_parts(training, whole);
  Model model = model_of(whole, at::kCPU, at::kFloat);
  CHECK(validation_loss(model, training.batches, 3) ==
        doctest::Approx(validation_loss(training.executor.worker(2).model(), training.batches, 8))
            .epsilon(1e-6));
}

TEST_CASE("an evaluation has the mean of the sequences and their standard deviation") {
  Training training(training_scenario("diloco", 2), real_options());
  training.run(1);
  const Model& model = training.executor.worker(0).model();
  const std::int64_t count = training.batches.validation_sequences();
  REQUIRE(count > 2);
  std::vector<double> losses;
  for (std::int64_t i = 0; i < count; ++i) {
    const Batch one = training.batches.validation(i, 1);
    const at::NoGradGuard no_grad;
    losses.push_back(model.loss(one.tokens, one.targets).item<double>());
  }
  double mean = 0, squares = 0;
  for (const double loss : losses) mean += loss / static_cast<double>(count);
  for (const double loss : losses) squares += (loss - mean) * (loss - mean);
  const EvaluationLoss found = evaluation_loss(model, training.batches, 3);
  CHECK(found.mean == doctest::Approx(mean).epsilon(1e-6));
  CHECK(found.mean == doctest::Approx(validation_loss(model, training.batches, 8)).epsilon(1e-6));
  CHECK(found.standard_deviation > 1e-3);
  CHECK(found.standard_deviation ==
        doctest::Approx(std::sqrt(squares / static_cast<double>(count - 1))).epsilon(1e-4));
}

TEST_CASE("where sites differ, the whole model has their mean and names the tensor") {
  Training training(training_scenario("diloco", 3), real_options());
  const at::NoGradGuard no_grad;
  for (int node = 0; node < 3; ++node) training.parameter(node, 1)[2] = node + 5.0;
  const WholeModel whole = assembled(training);
  CHECK(whole.tensors.at("embedding_norm")[2].item<double>() == doctest::Approx(6));
  CHECK(std::find(whole.averaged.begin(), whole.averaged.end(), "embedding_norm") != whole.averaged.end());
}

TEST_CASE("an expert that nobody holds is named") {
  const costmodel::ModelShape shape = tiny_shape();
  Assembly assembly(shape, false);
  ModelOptions options;
  options.experts.local = {{0, 1}, {0, 3}};
  const Model model(shape, options);
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (const Parameter& parameter : model.parameters())
    state.emplace_back(parameter.spec.name(), parameter.master.detach());
  assembly.add(options.experts, state);
  CHECK_THROWS_WITH_AS(assembly.finish(), doctest::Contains("no site holds expert 2 of layer 0"),
                       std::runtime_error);
}

TEST_CASE("an exported model is read back as it was, and a damaged one is refused by name") {
  const Folder folder;
  Training training(random_experts(false), real_options());
  training.run(1);
  WholeModel whole = assembled(training);
  whole.rounds = 1;
  whole.steps = 4;
  const std::string path = (folder.path / "exported").string();
  write_exported(whole, path);
  const WholeModel back = read_exported(path);
  for (const auto& [name, tensor] : back.tensors) {
    CAPTURE(name);
    CHECK(at::equal(tensor, whole.tensors.at(name)));
  }
  CHECK(back.tensors.size() == parameter_specs(training.scenario.model, {}).size());
  CHECK(back.shape.d_expert == 3);
  CHECK(back.rounds == 1);
  CHECK(back.steps == 4);

  // A site that trains from it has its part, and an anchor that is the same.
  Training other(training_scenario("diloco", 2), real_options());
  take_part(back, other.executor.worker(1));
  CHECK(at::equal(other.tensor(1, "layers.1.down"), back.tensors.at("layers.1.down")));
  CHECK(at::equal(other.tensor(1, "layers.1.down.anchor"), back.tensors.at("layers.1.down")));

  fs::resize_file(path + "/model.safetensors", 3000);
  CHECK_THROWS_AS((void)read_exported(path), fomoe::FileError);
  std::ofstream(path + "/config.json") << "{\"model_type\": \"mixtral\"}";
  CHECK_THROWS_WITH_AS((void)read_exported(path), doctest::Contains("got another model_type"),
                       fomoe::FileError);
}

TEST_CASE("the whole state comes back from checkpoints, and goes on at other sites") {
  const Folder folder;
  const std::string directory = (folder.path / "checkpoints").string();
  Training training(training_scenario("local_adamw", 4), exact_options());
  training.run(2);
  Checkpoints checkpoints(directory, {});
  checkpoints.save(training.executor, 2);
  checkpoints.wait();
  const WholeModel whole = read_checkpointed(directory);
  CHECK(whole.rounds == 2);
  CHECK(whole.steps == 8);
  CHECK(whole.averaged.empty());  // local_adamw averages moments, too
  check_parts(training, whole);

  // Two sites that go on with the same global batches as one site would: the sum of gradients is the same
  // with ddp, so weights and moments after more steps show that the whole state was taken over.
  for (const int sites : {1, 2}) {
    costmodel::Scenario scenario = training_scenario("ddp", sites);
    Training next(scenario, exact_options());
    next.executor.resume_at(8, 8);
    for (const costmodel::NodeId node : next.executor.hosted()) take_part(whole, next.executor.worker(node));
    next.next_round = 8;
    next.run();
    static at::Tensor expected;
    if (sites == 1) {
      expected = next.weights(0).clone();
    } else {
      CHECK(largest_difference(next.weights(1), expected) < 1e-10);
    }
    CHECK(next.executor.worker(0).inner().steps().front().item<float>() == 12);
  }

  fs::remove(directory + "/round-00000002/node-3.safetensors");
  CHECK_THROWS_WITH_AS((void)read_checkpointed(directory), doctest::Contains("the files of all nodes"),
                       fomoe::FileError);
}
