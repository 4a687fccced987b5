// Tests what may change when a run is resumed, and how a refusal is said.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

TEST_CASE("a refusal is one sentence for all local processes: the newest checkpoint, the key, --start-from") {
  const Folder folder;
  const std::string checkpoints = folder / "run";
  REQUIRE(run(train({"workload.tokens=131072", "trainer.schedule=cosine"},
                    {"--local", "--checkpoints", checkpoints}))
              .status == 0);  // 2 rounds
  const Ended refused =
      run(train({"workload.tokens=131072", "trainer.schedule=cosine", "trainer.learning_rate=0.02"},
                {"--local", "--checkpoints", checkpoints, "--resume"}));
  CHECK(refused.status == 2);
  // A warning may come before it, on a machine with fewer cores than sites.
  const std::size_t begin = refused.said.find("fomoe-train: " + checkpoints);
  REQUIRE(begin != std::string::npos);
  CHECK(refused.said.substr(begin) ==
        "fomoe-train: " + checkpoints +
            "/round-00000002: got the checkpoint of another run, which differs in "
            "trainer.learning_rate (0.01 instead of 0.02); expected that a resumed run has the same "
            "weights (trainer/SITES.md, Checkpoints); for example another directory with "
            "--checkpoints, and --start-from " +
            checkpoints + " to begin a new run with the state of this one\n");
  const Ended shape = run(train({"workload.tokens=131072", "trainer.schedule=cosine", "model.d_expert=16"},
                                {"--in-turn", "--checkpoints", checkpoints, "--resume"}));
  CHECK(shape.status == 2);
  CHECK(shape.said.find("which differs in model.d_expert (32 instead of 16)") != std::string::npos);
  CHECK(shape.said.find("--start-from") == std::string::npos);  // it needs the same model

  // More tokens, another latency and bandwidth may be given, also with a schedule that depends on the tokens.
  const Ended longer = run(train({"workload.tokens=196608", "trainer.schedule=cosine",
                                  "platform.latency=30ms", "platform.bandwidth=2Gbps"},
                                 {"--local", "--checkpoints", checkpoints, "--resume"}));
  CAPTURE(longer.said);
  CHECK(longer.status == 0);
  // Round 2 was the last one, after which no experts moved; now they do, so it is trained again.
  CHECK(longer.said.find("round-00000002/node-1.safetensors: got a checkpoint with the experts of round 2") !=
        std::string::npos);
  CHECK(longer.said.find("resumed after round 1 of 3") != std::string::npos);
}

TEST_CASE("a site that is lost is named without the place in Gloo's sources") {
  const Folder folder;
  Process parent(train({"workload.tokens=2621440"}, {"--local", "--checkpoints", folder / "run"}),
                 folder / "stderr");
  REQUIRE(wait_for_file(folder / "run/round-00000001/node-3.safetensors"));
  const std::vector<pid_t> sites = parent.children();
  REQUIRE(sites.size() == 4);
  ::kill(sites[2], SIGKILL);
  CHECK(parent.wait(60) == 128 + SIGKILL);
  const std::string said = content(folder / "stderr");
  CAPTURE(said);
  const std::size_t lost = said.find(" is lost: ");
  REQUIRE(lost != std::string::npos);
  CHECK(said.find(" is lost: ", lost + 1) == std::string::npos);  // once for all
  CHECK(said.find(".cc:") == std::string::npos);
  CHECK(said.find("gloo/") == std::string::npos);
}
