// Tests what runs meet outside of the laboratory: damaged checkpoints, changed scenarios, divergence, and
// sites that differ.
#include <doctest/doctest.h>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

TEST_CASE("a truncated newest checkpoint is said and an older one is used; the run ends in the same bits") {
  const Folder folder;
  const std::vector<std::string> settings = {"workload.tokens=131072"};  // two rounds
  REQUIRE(run(train(settings, {"--in-turn", "--checkpoints", folder / "run"})).status == 0);
  const std::string state = state_after(folder / "run", 2, 4);
  for (const char* how : {"--in-turn", "--local"}) {
    fs::resize_file(folder / "run/round-00000002/node-1.safetensors", 5000);
    const Ended ended = run(train(settings, {how, "--checkpoints", folder / "run", "--resume"}));
    CAPTURE(ended.said);
    CHECK(ended.status == 0);
    CHECK(ended.said.find("node-1.safetensors: got a truncated file") != std::string::npos);
    CHECK(ended.said.find("an older checkpoint is used") != std::string::npos);
    CHECK(ended.said.find("resumed after round 1 of 2") != std::string::npos);
    CHECK(state_after(folder / "run", 2, 4) == state);
  }
}

TEST_CASE("a run goes on with other links, prices and more tokens, as if it had had them from the start") {
  const Folder folder;
  const auto with_tokens = [](const char* tokens) {
    return std::vector<std::string>{std::string("workload.tokens=") + tokens, "strategy.local_steps=5"};
  };
  // 16 steps: rounds of 5, 5, 5 and 1 steps. The longer run has 5 more steps, so its fourth round is whole.
  REQUIRE(run(train(with_tokens("65536"), {"--in-turn", "--checkpoints", folder / "run"})).status == 0);
  REQUIRE(run(train(with_tokens("86016"), {"--in-turn", "--checkpoints", folder / "whole"})).status == 0);
  std::vector<std::string> longer = with_tokens("86016");
  longer.insert(longer.end(), {"platform.bandwidth=20Mbps", "platform.latency=90ms", "compute.step_time=9s",
                               "prices.gpu_hour=3USD"});
  const Ended ended = run(train(longer, {"--in-turn", "--checkpoints", folder / "run", "--resume"}));
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  CHECK(ended.said.find("got a checkpoint after 16 steps; expected one after 20") != std::string::npos);
  CHECK(ended.said.find("resumed after round 3 of 5") != std::string::npos);
  CHECK(state_after(folder / "run", 5, 4) == state_after(folder / "whole", 5, 4));
}

TEST_CASE("a training that diverges stops every site with one message, and keeps the last good checkpoint") {
  const Folder folder;
  // The rate grows from step to step until the weights leave all bounds, in the third of four rounds.
  const std::vector<std::string> settings = {"workload.tokens=262144", "trainer.learning_rate=10",
                                             "trainer.warmup_steps=2000", "strategy.method=diloco",
                                             "trainer.weight_decay=10"};
  for (const char* how : {"--local", "--in-turn"}) {
    CAPTURE(std::string(how));
    const std::string checkpoints = folder / (std::string("run") + how);
    const Ended ended =
        run(train(settings, {how, "--checkpoints", checkpoints, "--output", folder / "r.json"}));
    CAPTURE(ended.said);
    CHECK(ended.status == 1);
    const std::size_t at = ended.said.find("the training diverged at site-");
    REQUIRE(at != std::string::npos);
    const std::string message = ended.said.substr(at, ended.said.find('\n', at) - at);
    CHECK(message.find("is not finite") != std::string::npos);
    CHECK(message.find("a lower trainer.learning_rate") != std::string::npos);
    // The validation diverged, not a step that could be left out.
    CHECK((message.find("trainer.on_divergence=skip_step") == std::string::npos) ==
          (message.find("of the validation") != std::string::npos));
    std::size_t said = 0;
    for (std::size_t from = 0; (from = ended.said.find(message, from)) != std::string::npos; ++from) ++said;
    CHECK(said == 1);
    CHECK(!fs::exists(folder / "r.json"));
    CHECK(fs::exists(checkpoints + "/round-00000001/node-0.safetensors"));
    CHECK(!fs::exists(checkpoints + "/round-00000004"));
  }
}

TEST_CASE("a site with a worker and a server starts from the same weights as one with a worker alone") {
  const Ended ended =
      run(train({"workload.tokens=65536", "platform.sites=2", "strategy.method=fedavg"}, {"--local"}));
  CAPTURE(ended.said);
  CHECK(ended.status == 0);
}

TEST_CASE("NCCL is not taken where a site has no GPU") {
  const Ended ended =
      run(train({"workload.tokens=65536", "platform.sites=2", "trainer.transport=nccl"}, {"--local"}));
  CHECK(ended.status == 2);
  CHECK(ended.said.find("trainer.transport: got nccl, but not every site has a GPU of its own") !=
        std::string::npos);
}

TEST_CASE("sites whose processors have other vector instructions start from the same weights") {
  const Folder folder;
  const int port = 20'000 + (::getpid() + 77) % 10'000;
  std::vector<Process> processes;
  for (const int rank : {0, 1}) {
    processes.emplace_back(
        train({"workload.tokens=65536", "platform.sites=2", "trainer.timeout=60s"}, {}),
        folder / ("stderr-" + std::to_string(rank)),
        std::map<std::string, std::string>{{"RANK", std::to_string(rank)},
                                           {"WORLD_SIZE", "2"},
                                           {"MASTER_ADDR", "127.0.0.1"},
                                           {"MASTER_PORT", std::to_string(port)},
                                           {"ATEN_CPU_CAPABILITY", rank == 0 ? "default" : "avx2"}});
  }
  for (Process& process : processes) CHECK(process.wait(60) == 0);
  CHECK(content(folder / "stderr-1") == "");
}

TEST_CASE("a profile of a dense model is refused") {
  const Folder folder;
  std::string scenario = content(kScenario);
  scenario.replace(scenario.find("experts = 8"), 11, "experts = 0");
  scenario.replace(scenario.find("\"fomoe\""), 7, "\"ddp\"");
  std::ofstream(folder / "dense.toml") << scenario;
  const Ended ended =
      run({kTrain, "profile", "--scenario", folder / "dense.toml", "--output", folder / "profile.json"});
  CAPTURE(ended.said);
  CHECK(ended.status == 2);
  CHECK(ended.said.find("--scenario: got a model without experts") != std::string::npos);
}
