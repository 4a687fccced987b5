// Tests that a server, which averages and makes no optimiser steps, is never taken for a site that trains.
#include <filesystem>

#include "tests/trainer/run/training_case.hpp"
#include "trainer/execution/checkpoints.hpp"
#include "trainer/io/safetensors.hpp"
#include "trainer/run/agreement.hpp"
#include "trainer/run/starting_point.hpp"
#include "trainer/whole/checkpointed_model.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;
namespace fs = std::filesystem;

namespace {

constexpr costmodel::NodeId kServer = 2;  // behind two sites

/// The server keeps fp32 and sends bf16, so that its parameters differ from those of the sites.
costmodel::Scenario with_server() {
  costmodel::Scenario scenario = training_scenario("fedavg", kServer);
  scenario.strategy.wire = costmodel::plain_format(costmodel::ElementType::bf16);
  return scenario;
}

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("fomoe-server-" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  // std::filesystem::remove_all crashes in programs that link LibTorch, which has a copy of it.
  ~Folder() { (void)!std::system(("rm -r " + path.string()).c_str()); }
  fs::path path;
};

void save(Checkpoints& checkpoints, Training& training) {
  checkpoints.save(training.executor, training.next_round);
  checkpoints.wait();
}

/// The newest round from which a process with all nodes can resume.
std::int64_t newest(const Checkpoints& checkpoints, const Training& training) {
  std::vector<std::string> reasons;
  const std::string text = resumable(checkpoints, training.executor.hosted(), training.plan, reasons);
  CHECK(reasons.empty());
  return common_state({text}).rounds;
}

}  // namespace

TEST_CASE("sites that a server sends bf16 have the same weights, although the server has others") {
  Training training(with_server(), real_options());
  training.run(1);
  CHECK(!at::equal(training.weights(0), training.weights(kServer)));
  for (const auto& [name, hash] : weight_hashes(training.executor)) {
    CAPTURE(name);
    CHECK(hash.find(" and ") == std::string::npos);  // one value, not that of the sites and the server's
  }
}

TEST_CASE("a run with a server can be resumed again and again, also from files of earlier versions") {
  const Folder folder;
  Checkpoints checkpoints(folder.path.string(), {});
  Training first(with_server(), real_options());
  save(checkpoints, first.run(1));
  Training second(with_server(), real_options());
  checkpoints.load(second.executor, 1);
  second.next_round = 1;
  CHECK(second.executor.steps(0) == 4);
  CHECK(second.executor.steps(kServer) == 0);
  save(checkpoints, second.run(1));
  CHECK(newest(checkpoints, second) == 2);

  // In files of earlier versions, a server had the steps of the last resume.
  const std::string path = checkpoints.file(2, kServer);
  const SafetensorsFile file = read_safetensors(path);
  CheckpointHeader header = checkpoint_header(file.metadata, path);
  CHECK(header.steps == 0);
  header.steps = 4;
  write_safetensors(path, {file.tensors.begin(), file.tensors.end()}, to_metadata(header));
  CHECK(newest(checkpoints, second) == 2);
  CHECK(at::equal(read_checkpointed(folder.path.string()).tensors.at("layers.1.up"),
                  second.tensor(0, "layers.1.up")));
  Training third(with_server(), real_options());
  checkpoints.load(third.executor, 2);
  CHECK(third.executor.steps(0) == 8);
  CHECK(at::equal(third.weights(kServer), second.weights(kServer)));
}

TEST_CASE("the whole model is that of the sites, with the state of the outer optimiser, which a server has") {
  const Folder folder;
  Checkpoints checkpoints(folder.path.string(), {});
  Training training(with_server(), real_options());
  save(checkpoints, training.run(2));
  const WholeModel whole = read_checkpointed(folder.path.string());
  CHECK(whole.steps == 8);
  for (const Parameter& parameter : training.executor.worker(0).model().parameters()) {
    const std::string name = parameter.spec.name();
    CAPTURE(name);
    CHECK(at::equal(whole.tensors.at(name), parameter.master.detach()));
    const std::string moment = name + ".moment1", outer = name + ".outer1";
    const at::Tensor mean = (training.tensor(0, moment) + training.tensor(1, moment)) / 2;
    CHECK(largest_difference(whole.tensors.at(moment), mean) < 1e-6);
    CHECK(at::equal(whole.tensors.at(outer), training.tensor(kServer, outer)));
  }
  CHECK(whole.experts.at(1).at(0).moments == 8);

  // The server of a run with another outer optimiser cannot go on with its state.
  CHECK(started_from(whole, training.executor, "ckpt") == "starts from the state after 8 steps in ckpt");
  costmodel::Scenario other = with_server();
  other.strategy.outer_optimizer = costmodel::OuterOptimizer::adam;
  TrainingOptions options = real_options();
  options.outer.kind = costmodel::OuterOptimizer::adam;
  Training next(other, options);
  CHECK(started_from(whole, next.executor, "ckpt").ends_with("which is another one, starts anew"));
}
