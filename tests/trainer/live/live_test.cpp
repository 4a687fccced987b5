// Tests fomoe-train as users start it: real processes, sockets and files, and what remains after a kill.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {

struct Case {
  const char* name;
  int sites;
  std::vector<std::string> settings;
};

const std::vector<Case>& core_cases() {
  static const std::vector<Case> cases = {
      {"ddp", 2, {"strategy.method=ddp"}},
      {"ddp in buckets", 2, {"strategy.method=ddp", "strategy.fragments=2"}},
      {"centralised", 2, {"strategy.method=centralised"}},
      {"local_sgd", 2, {"strategy.method=local_sgd"}},
      {"diloco", 2, {"strategy.method=diloco"}},
      {"local_adamw", 2, {"strategy.method=local_adamw"}},
      {"streaming_diloco",
       2,
       {"strategy.method=streaming_diloco", "strategy.fragments=2", "strategy.overlap_steps=4"}},
      {"fomoe, fixed", 2, {"strategy.expert_overlap=1", "strategy.placement=fixed"}},
      {"fomoe, fixed, in fragments",
       2,
       {"strategy.expert_overlap=1", "strategy.placement=fixed", "strategy.fragments=2",
        "strategy.overlap_steps=4"}},
      {"fomoe, random", 4, {}},
      {"fomoe, fixed, skip-token",
       2,
       {"strategy.expert_overlap=1", "strategy.placement=fixed", "strategy.skip_token=true"}},
      {"fomoe, random, skip-token", 2, {"strategy.expert_overlap=1", "strategy.skip_token=true"}},
  };
  return cases;
}

std::vector<std::string> settings_of(const Case& one) {
  std::vector<std::string> settings = kShort;
  settings.push_back("platform.sites=" + std::to_string(one.sites));
  settings.insert(settings.end(), one.settings.begin(), one.settings.end());
  return settings;
}

}  // namespace

TEST_CASE("every core method learns across processes; one process in turn ends in the same bits") {
  for (const Case& one : core_cases()) {
    const std::string name = one.name;
    CAPTURE(name);
    const Folder folder;
    const std::vector<std::string> settings = settings_of(one);
    const auto more = [&](const char* how) {
      return std::vector<std::string>{std::string("--") + how, "--output",
                                      folder / (std::string(how) + ".json"), "--checkpoints", folder / how};
    };
    const Ended local = run(train(settings, more("local")));
    CAPTURE(local.said);
    REQUIRE(local.status == 0);
    const json report = json::parse(content(folder / "local.json"));
    CHECK(report["executor"] == "measured");
    // An untrained model has a loss of log 256 = 5.55; the entropy of the chain is 1.60
    // (Corpus::synthetic_loss).
    CHECK(std::log(report["quality"]["perplexity"].get<double>()) < 2.5);
    CHECK(report["wall_clock_s"].get<double>() < 60);
    // The timeline of one round, for `fomoe report`: every site computes within it.
    const json& round = report["round_timeline"];
    CHECK(round["duration_s"].get<double>() > 0);
    CHECK(round["nodes"].size() >= 1);
    std::set<int> computing;
    for (const json& span : round["spans"]) {
      CHECK(span["start_s"].get<double>() <= span["end_s"].get<double>());
      CHECK(span["end_s"].get<double>() <= round["duration_s"].get<double>() * (1 + 1e-9));
      if (span["kind"] == "compute") computing.insert(span["node"].get<int>());
    }
    // Servers and sites without a batch compute nothing.
    CHECK_FALSE(computing.empty());
    if (std::string(one.name) == "diloco") CHECK(computing.size() == round["nodes"].size());

    const Ended turn = run(train(settings, more("in-turn")));
    REQUIRE(turn.status == 0);
    const int rounds = report["round"]["count"],
              nodes = std::string(one.name) == "centralised" ? 1 : one.sites;
    CHECK(state_after(folder / "in-turn", rounds, nodes) == state_after(folder / "local", rounds, nodes));
    CHECK(json::parse(content(folder / "in-turn.json"))["quality"]["perplexity"] ==
          report["quality"]["perplexity"]);
  }
}

TEST_CASE("with several threads, too: the same bits in turn and across processes, and each time") {
  const Folder folder;
  // Sums of more than 32,768 elements are divided among threads.
  const std::vector<std::string> settings = {"workload.tokens=65536", "model.d_model=128",
                                             "model.vocabulary=1024", "workload.global_batch_sequences=32",
                                             "trainer.clip_norm=1"};
  const auto state = [&](const char* how, const std::string& name) {
    std::vector<std::string> command = train(settings, {how, "--checkpoints", folder / name});
    *(std::find(command.begin(), command.end(), "--threads") + 1) = "3";
    const Ended ended = run(command);
    CAPTURE(ended.said);
    REQUIRE(ended.status == 0);
    return state_after(folder / name, 2, 4);
  };
  const std::string first = state("--in-turn", "first");
  CHECK(state("--in-turn", "again") == first);
  CHECK(state("--local", "local") == first);
}

TEST_CASE("a site that is killed is named by the others, who end; the last checkpoint goes on bit-equal") {
  const Folder folder;
  REQUIRE(run(train(kShort, {"--local", "--checkpoints", folder / "whole"})).status == 0);

  {
    Process parent(train(kShort, {"--local", "--checkpoints", folder / "killed"}), folder / "stderr");
    for (int node = 0; node < 4; ++node)
      REQUIRE(
          wait_for_file(folder / ("killed/round-00000001/node-" + std::to_string(node) + ".safetensors")));
    const std::vector<pid_t> sites = parent.children();
    REQUIRE(sites.size() == 4);
    ::kill(sites[2], SIGKILL);
    CHECK(parent.wait(/*limit_s=*/20) != 0);
    const std::string said = content(folder / "stderr");
    CAPTURE(said);
    std::size_t named = 0;
    for (std::size_t at = 0; (at = said.find("site-2 (rank 2) is lost", at)) != std::string::npos; ++at)
      ++named;
    CHECK(named == 1);  // three sites name it, and their parent says it once
    CHECK(said.find("site-0 (rank 0) is lost") == std::string::npos);
  }
  CHECK(!fs::exists(folder / "killed/round-00000004"));

  const Ended resumed = run(train(
      kShort, {"--local", "--checkpoints", folder / "killed", "--resume", "--output", folder / "r.json"}));
  CAPTURE(resumed.said);
  REQUIRE(resumed.status == 0);
  CHECK(resumed.said.find("resumed after round") != std::string::npos);
  CHECK(state_after(folder / "killed", 4, 4) == state_after(folder / "whole", 4, 4));
}

TEST_CASE("a site that does not end when another has died is stopped, and the run ends") {
  const Folder folder;
  Process parent(train(kShort, {"--local", "--checkpoints", folder / "run"}), folder / "stderr");
  REQUIRE(wait_for_file(folder / "run/round-00000001/node-3.safetensors"));
  const std::vector<pid_t> sites = parent.children();
  REQUIRE(sites.size() == 4);
  ::kill(sites[1], SIGSTOP);  // emulates a process that waits forever
  ::kill(sites[2], SIGKILL);
  CHECK(parent.wait(/*limit_s=*/60) == 128 + SIGKILL);
  CHECK(
      content(folder / "stderr").find("stopped rank 1, which was still waiting for a site that has ended") !=
      std::string::npos);
}

TEST_CASE("killed again and again at any moment, resumed each time: the same bits as in one go") {
  const Folder folder;
  const std::vector<std::string> settings = {"workload.tokens=262144",
                                             "strategy.local_steps=4"};  // 16 rounds
  REQUIRE(run(train(settings, {"--in-turn", "--checkpoints", folder / "whole"})).status == 0);
  int kills = 0;
  for (const double after_s : {0.9, 1.0, 1.3, 1.1, 1.6, 60.0}) {
    Process process(train(settings, {"--in-turn", "--checkpoints", folder / "killed", "--resume"}),
                    folder / "stderr");
    const int status = process.wait(after_s);
    if (status == 0) break;
    REQUIRE(status == -1);
    process.kill();
    process.wait();
    ++kills;
  }
  CHECK(kills >= 1);
  CHECK(state_after(folder / "killed", 16, 4) == state_after(folder / "whole", 16, 4));
}

TEST_CASE(
    "a run that is complete is said to be so when it is started again: status 0, and its report again") {
  const Folder folder;
  const std::vector<std::string> settings = {"workload.tokens=65536", "platform.sites=2"};  // one round
  // A launcher that starts --local may have set its own variables for processes.
  Process first(train(settings, {"--local", "--checkpoints", folder / "run"}), folder / "first",
                {{"RANK", "7"},
                 {"LOCAL_RANK", "7"},
                 {"WORLD_SIZE", "9"},
                 {"MASTER_ADDR", "192.0.2.1"},
                 {"MASTER_PORT", "9"}});
  const int status = first.wait();
  REQUIRE_MESSAGE(status == 0, content(folder / "first"));
  const std::string state = state_after(folder / "run", 1, 2);
  for (const char* how : {"--in-turn", "--local"}) {
    const Ended again = run(
        train(settings, {how, "--checkpoints", folder / "run", "--resume", "--output", folder / "r.json"}));
    CAPTURE(again.said);
    CHECK(again.status == 0);
    CHECK(again.said.find("the run is already complete") != std::string::npos);
    CHECK(content(folder / "r.json") == content(folder / "run/report.json"));
    CHECK(json::parse(content(folder / "r.json"))["executor"] == "measured");
    CHECK(state_after(folder / "run", 1, 2) == state);
  }
}

TEST_CASE("truncated, foreign and other runs' checkpoints are refused: one line, status 2") {
  const Folder folder;
  const std::vector<std::string> settings = {"workload.tokens=65536"};  // one round
  REQUIRE(run(train(settings, {"--in-turn", "--checkpoints", folder / "run"})).status == 0);
  const std::string file = folder / "run/round-00000001/node-1.safetensors", whole = content(file);
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = settings;
    all.insert(all.end(), more.begin(), more.end());
    const Ended ended = run(train(all, {"--in-turn", "--checkpoints", folder / "run", "--resume"}));
    CHECK(ended.status == 2);
    CHECK(std::count(ended.said.begin(), ended.said.end(), '\n') == 1);
    return ended.said;
  };
  const auto write = [&](const std::string& text) { std::ofstream(file, std::ios::binary) << text; };
  write(whole.substr(0, whole.size() - 1));
  CHECK(refused({}).find("truncated") != std::string::npos);
  write(whole.substr(0, 100));
  CHECK(refused({}).find("truncated") != std::string::npos);
  write("PK\x03\x04 something else altogether");
  CHECK(refused({}).find("another format") != std::string::npos);
  write(whole);
  const Ended again = run(train(settings, {"--in-turn", "--checkpoints", folder / "run"}));
  CHECK(again.status == 2);
  CHECK(again.said.find("already contains checkpoints") != std::string::npos);
  CHECK(refused({"trainer.learning_rate=0.02"}).find("another run") != std::string::npos);
}

TEST_CASE(
    "sites that were started with another seed or scenario are refused; the order of starting is free") {
  const Folder folder;
  const auto start = [&](const std::vector<std::vector<std::string>>& more, const std::vector<int>& order,
                         int port) {
    std::map<int, Process> processes;
    for (const int rank : order) {
      std::vector<std::string> command =
          train({"workload.tokens=65536", "platform.sites=2", "trainer.timeout=60s"},
                more[static_cast<std::size_t>(rank)]);
      processes.emplace(rank, Process(command, folder / ("stderr-" + std::to_string(rank)),
                                      {{"RANK", std::to_string(rank)},
                                       {"WORLD_SIZE", "2"},
                                       {"MASTER_ADDR", "127.0.0.1"},
                                       {"MASTER_PORT", std::to_string(port)}}));
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    std::vector<int> status;
    for (auto& [rank, process] : processes) status.push_back(process.wait(60));
    return status;
  };
  // Ports below the system's ephemeral range, and different in test runs at the same time.
  const int port = 20'000 + ::getpid() % 10'000;
  CHECK(start({{}, {}}, {1, 0}, port) == std::vector<int>{0, 0});
  CHECK(start({{}, {"--seed", "7"}}, {0, 1}, port + 1) == std::vector<int>{2, 2});
  for (const char* rank : {"0", "1"}) {
    const std::string said = content(folder / (std::string("stderr-") + rank));
    CHECK(said.find("site-1 (rank 1) differs from rank 0 in seed (7 instead of 42)") != std::string::npos);
  }
  CHECK(start({{}, {"--set", "strategy.local_steps=8"}}, {0, 1}, port + 2) == std::vector<int>{2, 2});
}

TEST_CASE("routing counts of a run are what an affinity placement is made from") {
  const Folder folder;
  const std::vector<std::string> settings = {"workload.tokens=65536", "strategy.skip_token=true"};
  REQUIRE(run(train(settings, {"--local", "--routing-counts", folder / "routing.csv"})).status == 0);
  std::ifstream file(folder / "routing.csv");
  std::string line;
  std::int64_t sum = 0, rows = 0;
  REQUIRE(std::getline(file, line));
  CHECK(line == "layer,expert,site,count");
  for (; std::getline(file, line); ++rows) sum += std::stoll(line.substr(line.rfind(',') + 1));
  CHECK(rows == 2 * 8 * 4);
  CHECK(sum == 2 * 2 * 65536);  // layers times k times tokens
  std::vector<std::string> affinity = settings;
  affinity.insert(affinity.end(),
                  {"strategy.placement=affinity", "strategy.routing_counts=" + (folder / "routing.csv")});
  const Ended ended = run(train(affinity, {"--in-turn", "--output", folder / "report.json"}));
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  CHECK(content(folder / "report.json").find("affinity placement") != std::string::npos);
}

TEST_CASE("a paced run sleeps for the scenario's times, sends the plan's bytes and carries its scenario") {
  for (const char* method : {"ddp", "fomoe", "streaming_diloco"}) {
    CAPTURE(std::string(method));
    const Folder folder;
    std::vector<std::string> settings = {
        "workload.tokens=32768",    "workload.global_batch_sequences=64",
        "compute.step_time=30ms",   "strategy.local_steps=4",
        "network_model.host=ideal", std::string("strategy.method=") + method};
    if (std::string(method) == "streaming_diloco") settings.push_back("strategy.fragments=2");
    const Ended ended = run(train(settings, {"--local", "--paced", "--output", folder / "run.json"}));
    CAPTURE(ended.said);
    REQUIRE(ended.status == 0);
    REQUIRE(run(with_settings(
                    {kPlan, "simulate", kScenario, "--rounds", "all", "--output", folder / "simulated.json"},
                    settings))
                .status == 0);
    const json measured = json::parse(content(folder / "run.json")),
               simulated = json::parse(content(folder / "simulated.json"));
    for (std::size_t site = 0; site < 4; ++site)
      CHECK(measured["sites"][site]["bytes_sent"] == simulated["sites"][site]["bytes_sent"]);
    // 8 steps of 30 ms each may end late but never early; on a busy machine they are late by some
    // milliseconds.
    const double rounds = measured["round"]["count"];
    CHECK(rounds * measured["round"]["compute_s"].get<double>() >= 8 * 0.030);
    CHECK(rounds * measured["round"]["compute_s"].get<double>() < 8 * 0.030 + 0.3);
    CHECK(!measured.contains("quality"));
    CHECK(measured["run"]["paced"] == true);
    CHECK(measured["run"]["connections"]["list"].size() >= 3);  // with three other sites
    CHECK(measured["run"]["id"].get<std::string>().size() == 16);
    CHECK(measured["run"]["scenario_toml"].get<std::string>().find("step_time = '30ms'") !=
          std::string::npos);
    CHECK(content(folder / "run.json").find("compute was paced") != std::string::npos);
    // The report is self-contained: the prediction of the measured run needs no other file.
    REQUIRE(run({kPlan, "validate", folder / "run.json", "--output", folder / "validated.json"}).status == 0);
    const json validated = json::parse(content(folder / "validated.json"));
    CHECK(validated["runs"][0]["errors"]["bytes"] == 0);
    CHECK(validated["runs"][0]["predicted"]["wall_clock_s"].get<double>() ==
          doctest::Approx(simulated["wall_clock_s"].get<double>()));
  }
}

TEST_CASE("a run that trains nothing has no checkpoints, no routing counts and no turns") {
  const Folder folder;
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--paced", "--in-turn"},
        std::vector<std::string>{"--paced", "--local", "--checkpoints", folder / "c"},
        std::vector<std::string>{"--paced", "--local", "--routing-counts", folder / "r.csv"}}) {
    const Ended ended = run(train({}, more));
    CHECK(ended.status == 2);
    CHECK(ended.said.find("--paced: got --") != std::string::npos);
  }
}
