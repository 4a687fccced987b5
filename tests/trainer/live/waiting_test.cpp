// Tests runs whose sites are killed and come back, and runs that go on at other sites.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

namespace {

std::string state_of(const std::string& folder, int nodes) {
  std::string all;
  for (int node = 0; node < nodes; ++node)
    all += content(folder + "/node-" + std::to_string(node) + ".safetensors");
  return all;
}

}  // namespace

TEST_CASE("sites that are killed again and again are waited for; the run ends in the same bits") {
  const Folder folder;
  const std::vector<std::string> settings = {"workload.tokens=524288", "strategy.local_steps=4",
                                             "trainer.on_lost_site=wait"};  // 32 rounds
  REQUIRE(run(train(settings, {"--in-turn", "--checkpoints", folder / "whole"})).status == 0);
  Process parent(train(settings, {"--local", "--checkpoints", folder / "killed"}), folder / "stderr");
  int kills = 0;
  for (const int victim : {2, 0, 3, 1}) {  // rank 0 has the store
    char next[64];
    std::snprintf(next, sizeof next, "killed/round-%08d/node-%d.safetensors", 4 + 6 * kills, victim);
    if (!wait_for_file(folder / next)) break;
    const std::vector<pid_t> sites = parent.children();
    REQUIRE(sites.size() == 4);
    ::kill(sites[static_cast<std::size_t>(victim)], SIGKILL);
    ++kills;
  }
  CHECK(kills == 4);
  const int status = parent.wait(120);
  const std::string said = content(folder / "stderr");
  CAPTURE(said);
  CHECK(status == 0);
  CHECK(said.find("it is started again") != std::string::npos);
  CHECK(said.find("is lost") != std::string::npos);
  CHECK(said.find("resumed after round") != std::string::npos);
  CHECK(state_of(folder / "killed/round-00000032", 4) == state_of(folder / "whole/round-00000032", 4));
}

TEST_CASE("a lost site that does not come back ends the run after the time that was given") {
  const Folder folder;
  const int port = 20'000 + (::getpid() + 191) % 10'000;
  std::map<int, Process> sites;
  for (const int rank : {0, 1}) {
    sites.emplace(rank, Process(train({"workload.tokens=2621440", "platform.sites=2", "trainer.timeout=3s",
                                       "trainer.on_lost_site=wait", "trainer.lost_site_timeout=5s"},
                                      {"--checkpoints", folder / "run"}),
                                folder / ("stderr-" + std::to_string(rank)),
                                {{"RANK", std::to_string(rank)},
                                 {"WORLD_SIZE", "2"},
                                 {"MASTER_ADDR", "127.0.0.1"},
                                 {"MASTER_PORT", std::to_string(port)}}));
  }
  REQUIRE(wait_for_file(folder / "run/round-00000001/node-1.safetensors"));
  sites.at(1).kill();
  CHECK(sites.at(0).wait(60) == 1);
  const std::string said = content(folder / "stderr-0");
  CAPTURE(said);
  CHECK(said.find("waiting for all sites") != std::string::npos);
  CHECK(said.find("site-1 (rank 1) did not respond") != std::string::npos);
}

TEST_CASE("a site that finds no rank 0 says so in one line") {
  const Folder folder;
  Process site(train({"platform.sites=2"}, {"--start-timeout", "1s", "--set", "trainer.timeout=1s"}),
               folder / "stderr",
               {{"RANK", "1"},
                {"WORLD_SIZE", "2"},
                {"MASTER_ADDR", "127.0.0.1"},
                {"MASTER_PORT", std::to_string(20'000 + (::getpid() + 193) % 10'000)}});
  CHECK(site.wait(60) == 1);
  const std::string said = content(folder / "stderr");
  CHECK(said.starts_with("fomoe-train: site-0 (rank 0) does not answer at 127.0.0.1:"));
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
}

TEST_CASE("waiting for lost sites needs checkpoints") {
  const Ended ended = run(train({"trainer.on_lost_site=wait"}, {"--local"}));
  CHECK(ended.status == 2);
  CHECK(ended.said.find("got wait without --checkpoints") != std::string::npos);
}

TEST_CASE("a run goes on at fewer or more sites; the whole model is exported, evaluated and trained on") {
  const Folder folder;
  const std::vector<std::string> first = {"workload.tokens=262144"};  // 64 steps in 4 rounds at 4 sites
  REQUIRE(run(train(first, {"--in-turn", "--checkpoints", folder / "four", "--output", folder / "four.json"}))
              .status == 0);
  const double after_four = nlohmann::json::parse(content(folder / "four.json"))["quality"]["perplexity"];
  for (const char* sites : {"2", "8"}) {
    CAPTURE(std::string(sites));
    const Ended ended = run(
        train({"workload.tokens=393216", std::string("platform.sites=") + sites, "strategy.expert_overlap=2"},
              {"--local", "--start-from", folder / "four", "--output", folder / "more.json"}));
    CAPTURE(ended.said);
    REQUIRE(ended.status == 0);
    CHECK(ended.said.find("starts from the state after 64 steps") != std::string::npos);
    const auto report = nlohmann::json::parse(content(folder / "more.json"));
    CHECK(report["optimizer_steps"] == 32);
    CHECK(report["quality"]["perplexity"].get<double>() < after_four);
  }
  // Another outer optimiser starts anew: Nesterov's sums as Adam's means would diverge.
  const Ended adam =
      run(train({"workload.tokens=393216", "strategy.outer_optimizer=adam"},
                {"--in-turn", "--start-from", folder / "four", "--output", folder / "adam.json"}));
  CAPTURE(adam.said);
  REQUIRE(adam.status == 0);
  CHECK(adam.said.find("the outer optimiser, which is another one, starts anew") != std::string::npos);
  CHECK(nlohmann::json::parse(content(folder / "adam.json"))["quality"]["perplexity"].get<double>() < 60);
  const Ended seen = run(train({"workload.tokens=393216", "trainer.validation_sequences=4000"},
                               {"--in-turn", "--start-from", folder / "four"}));
  CHECK(seen.status == 2);
  CHECK(seen.said.find("trainer.validation_sequences: got 4000, although the training left out") !=
        std::string::npos);
  const Ended odd = run(train({"workload.tokens=393216", "strategy.local_steps=10"},
                              {"--in-turn", "--start-from", folder / "four"}));
  CHECK(odd.status == 2);
  CHECK(odd.said.find("--start-from: got a state after 64 steps") != std::string::npos);
  const Ended over = run(train({"workload.tokens=196608"}, {"--in-turn", "--start-from", folder / "four"}));
  CHECK(over.status == 2);
  CHECK(over.said.find("expected a longer run, which goes on from there") != std::string::npos);
  const Ended other = run(
      train({"workload.tokens=393216", "model.d_expert=16"}, {"--in-turn", "--start-from", folder / "four"}));
  CHECK(other.status == 2);
  CHECK(other.said.find("model.d_expert: got 16; expected 32") != std::string::npos);

  REQUIRE(run({kTrain, "export", folder / "four", "--output", folder / "exported"}).status == 0);
  for (const char* model : {"four", "exported"}) {
    const Ended ended = run(with_settings(
        {kTrain, "evaluate", folder / model, "--scenario", kScenario, "--output", folder / "loss.json"},
        first));
    CAPTURE(ended.said);
    REQUIRE(ended.status == 0);
    CHECK(nlohmann::json::parse(content(folder / "loss.json"))["perplexity"].get<double>() ==
          doctest::Approx(after_four).epsilon(1e-5));
  }
  // The scenario must describe the model's function, also in the numbers that its weights do not show.
  for (const char* constant : {"trainer.rope_theta=500", "trainer.router_temperature=2"}) {
    const Ended ended =
        run({kTrain, "evaluate", folder / "four", "--scenario", kScenario, "--set", constant});
    CAPTURE(ended.said);
    CHECK(ended.status == 2);
    CHECK(ended.said.find(std::string(constant).substr(0, std::string(constant).find('=')) + ": got") !=
          std::string::npos);
  }
  // A new run that starts from the exported weights is good from its first step on.
  const Ended tuned = run(train({"workload.tokens=65536", "trainer.initial_weights=" + (folder / "exported"),
                                 "trainer.learning_rate=0.001", "platform.sites=2"},
                                {"--local", "--log", folder / "steps.jsonl"}));
  CAPTURE(tuned.said);
  REQUIRE(tuned.status == 0);
  std::ifstream log(folder / "steps.jsonl");
  std::string line;
  REQUIRE(std::getline(log, line));
  CHECK(std::exp(nlohmann::json::parse(line)["loss"].get<double>()) < 1.5 * after_four);
}
