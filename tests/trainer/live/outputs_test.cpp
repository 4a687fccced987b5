// What a run writes when a disk is full, when a file already has the lines of another run, and when it
// resumes.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <thread>
#include <utility>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {

const std::vector<std::string> kTwoRounds = {"workload.tokens=131072", "platform.sites=2"};

/// How often each step of each site is in the log: once.
std::map<std::pair<std::string, std::int64_t>, int> steps_in(const std::string& log) {
  std::map<std::pair<std::string, std::int64_t>, int> steps;
  std::istringstream stream(content(log));
  for (std::string line; std::getline(stream, line);) {
    const json entry = json::parse(line);
    if (entry["kind"] == "step") ++steps[{entry["site"], entry["step"]}];
  }
  return steps;
}

bool each_once(const std::map<std::pair<std::string, std::int64_t>, int>& steps) {
  return std::all_of(steps.begin(), steps.end(), [](const auto& entry) { return entry.second == 1; });
}

}  // namespace

TEST_CASE("no output of a run replaces its scenario, its data or another output") {
  const Folder folder;
  const auto refused = [&](const std::string& scenario, const std::vector<std::string>& options) {
    std::vector<std::string> command = {kTrain, "run", scenario, "--in-turn"};
    command.insert(command.end(), options.begin(), options.end());
    const std::string before = content(scenario);
    const Ended ended = run(command);
    CAPTURE(ended.said);
    CHECK(ended.status == 2);
    CHECK(ended.said.find("expected a file of its own, since it would be replaced") != std::string::npos);
    CHECK(content(scenario) == before);
  };
  const std::string scenario = folder / "tiny.toml", link = folder / "link.json";
  std::filesystem::copy_file(kScenario, scenario);
  std::filesystem::create_symlink(scenario, link);
  refused(scenario, {"--log", scenario});
  refused(scenario, {"--output", link});
  refused(scenario, {"--log", folder / "run.json", "--output", folder / "run.json"});
  const std::string tokens = folder / "tokens.bin";
  std::ofstream(tokens, std::ios::binary) << std::string(1 << 16, '\0');
  refused(scenario, {"--set", "trainer.data=" + tokens, "--log", tokens});
  CHECK(content(tokens) == std::string(1 << 16, '\0'));
}

TEST_CASE("a log on a full disk: the run goes on, the report is written, and the status says so") {
  const Folder folder;
  const Ended ended =
      run(train(kTwoRounds, {"--in-turn", "--log", "/dev/full", "--output", folder / "run.json"}));
  CAPTURE(ended.said);
  CHECK(ended.status == 1);
  CHECK(ended.said.find("/dev/full: cannot be written (No space left on device)") != std::string::npos);
  CHECK(json::parse(content(folder / "run.json"))["executor"] == "measured");
}

TEST_CASE("an output that cannot be written: the report is beside the checkpoints, or printed") {
  const Folder folder;
  const std::string too_long = folder / (std::string(300, 'x') + ".json");
  const Ended kept =
      run(train(kTwoRounds, {"--in-turn", "--checkpoints", folder / "run", "--output", too_long}));
  CAPTURE(kept.said);
  CHECK(kept.status == 1);
  CHECK(kept.said.find("the report is in " + (folder / "run/report.json")) != std::string::npos);
  CHECK(json::parse(content(folder / "run/report.json"))["executor"] == "measured");
  std::string command;
  for (const std::string& word : train(kTwoRounds, {"--in-turn", "--output", too_long}))
    command += word + ' ';
  const Ended printed = run({"/bin/sh", "-c", command + "> " + (folder / "printed")});
  CHECK(printed.status == 1);
  CHECK(json::parse(content(folder / "printed"))["executor"] == "measured");
}

TEST_CASE("a log has one run: a new run replaces it, and a resumed one drops what is done again") {
  const Folder folder;
  const std::string log = folder / "steps.jsonl";
  for (int again = 0; again < 2; ++again) {
    REQUIRE(run(train(kTwoRounds, {"--in-turn", "--log", log})).status == 0);
    CHECK(steps_in(log).size() == 2 * 32);  // two rounds of 16 steps at two sites
    CHECK(each_once(steps_in(log)));
  }
  const auto resumed = [&](const char* tokens) {
    return train({std::string("workload.tokens=") + tokens, "platform.sites=2"},
                 {"--in-turn", "--log", log, "--checkpoints", folder / "run", "--resume"});
  };
  REQUIRE(run(resumed("131072")).status == 0);
  // The run was killed in its third round, of which the log has a step and a half.
  std::ofstream(log, std::ios::app) << R"({"kind": "step", "site": "site-0", "round": 2, "step": 32})" << '\n'
                                    << R"({"kind": "step", "site": "site-0", "rou)";
  REQUIRE(run(resumed("262144")).status == 0);
  CHECK(steps_in(log).size() == 2 * 64);
  CHECK(each_once(steps_in(log)));
}

TEST_CASE("a run that was killed and resumed: the report states the whole run, and what was lost") {
  const Folder folder;
  const auto command = [&](const char* tokens) {
    return train({std::string("workload.tokens=") + tokens, "platform.sites=2"},
                 {"--in-turn", "--checkpoints", folder / "run", "--resume", "--output", folder / "r.json",
                  "--routing-counts", folder / "routing.csv"});
  };
  const auto says_rounds = [&](const Ended& ended) {
    return ended.said.find("/routing.csv: only the rounds after round 2 count") != std::string::npos;
  };
  // Two rounds that end are as good as a kill after the second checkpoint.
  const Ended first = run(command("131072"));
  REQUIRE(first.status == 0);
  CHECK(!says_rounds(first));
  CHECK_FALSE(json::parse(content(folder / "r.json"))["run"].contains("whole_run"));
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const Ended second = run(command("262144"));
  REQUIRE(second.status == 0);
  CHECK(says_rounds(second));
  const json report = json::parse(content(folder / "r.json"));
  CHECK(report["run"]["whole"] == false);
  const json& whole = report["run"]["whole_run"];
  CHECK(whole["restarts"] == 1);
  CHECK(whole["lost_s"].get<double>() >= 2);
  CHECK(whole["wall_clock_s"].get<double>() >
        report["wall_clock_s"].get<double>() + whole["lost_s"].get<double>());
}

TEST_CASE("evaluate refuses sequences on which the model was trained, also after an export") {
  const Folder folder;
  std::vector<std::string> settings = kTwoRounds;
  settings.emplace_back("trainer.validation_sequences=16");
  REQUIRE(run(train(settings, {"--in-turn", "--checkpoints", folder / "run"})).status == 0);
  REQUIRE(run({kTrain, "export", folder / "run", "--output", folder / "exported"}).status == 0);
  for (const char* model : {"run", "exported"}) {
    const auto evaluate = [&](const char* sequences) {
      std::vector<std::string> all = {kTrain, "evaluate", folder / model, "--scenario", kScenario};
      std::vector<std::string> asked = kTwoRounds;
      asked.push_back(std::string("trainer.validation_sequences=") + sequences);
      for (const std::string& setting : asked) all.insert(all.end(), {"--set", setting});
      return run(all);
    };
    CHECK(evaluate("16").status == 0);
    CHECK(evaluate("8").status == 0);
    const Ended more = evaluate("17");
    CHECK(more.status == 2);
    CHECK(more.said.find("got 17, although the training left out 16 sequences") != std::string::npos);
  }
}

// Elsewhere it may take the mean loss of the sites' models instead, which differ between two averages.
TEST_CASE("the perplexity in a report is that of the model that an export has, also where sites differ") {
  for (const std::vector<std::string>& method : std::vector<std::vector<std::string>>{
           {"strategy.method=streaming_diloco", "strategy.overlap_steps=2"},
           {"strategy.method=streaming_diloco", "model.experts=1", "model.active_experts=1"},
           {"strategy.method=fomoe", "strategy.expert_overlap=4", "strategy.fragments=2",
            "strategy.overlap_steps=2"},
           {"strategy.method=diloco"}}) {
    const Folder folder;
    CAPTURE(method.front());
    std::vector<std::string> settings = method;
    settings.insert(settings.end(), {"workload.tokens=32768", "strategy.local_steps=4"});
    const Ended trained = run(
        train(settings, {"--local", "--checkpoints", folder / "run", "--output", folder / "report.json"}));
    CAPTURE(trained.said);
    REQUIRE(trained.status == 0);
    std::vector<std::string> evaluate = {kTrain,    "evaluate", folder / "run",      "--scenario",
                                         kScenario, "--output", folder / "loss.json"};
    for (const std::string& setting : settings) evaluate.insert(evaluate.end(), {"--set", setting});
    REQUIRE(run(evaluate).status == 0);
    const auto of = [&](const char* file) { return nlohmann::json::parse(content(folder / file)); };
    CHECK(of("report.json")["quality"]["perplexity"].get<double>() ==
          doctest::Approx(of("loss.json")["perplexity"].get<double>()).epsilon(1e-5));
  }
}

TEST_CASE("an answer on stdout that cannot be written is an error") {
  const Folder folder;
  const std::string command =
      kTrain + " run " + kScenario + " --in-turn --set strategy.local_steps=2 --set workload.tokens=8192 ";
  for (const char* where : {"--output - >/dev/full", "--output - >&-", ">/dev/full"}) {
    CAPTURE(std::string(where));
    const Ended ended = run({"/bin/sh", "-c", command + where});
    CHECK(ended.status == 1);
    CHECK(ended.said.find("fomoe-train: stdout: cannot be written\n") != std::string::npos);
  }
}

TEST_CASE("more threads than cores are named, but not where nothing is computed") {
  const Folder folder;  // has no model to start from, so that the run ends at once
  const auto threads = std::to_string(std::thread::hardware_concurrency());
  const auto together = std::to_string(2 * std::thread::hardware_concurrency());
  for (const bool paced : {false, true}) {
    std::vector<std::string> command = {
        kTrain, "run", kScenario, "--local", "--threads=" + threads, "--start-from", folder / "none"};
    if (paced) command.push_back("--paced");
    const Ended ended = run(with_settings(command, kTwoRounds));
    CAPTURE(ended.said);
    CHECK(ended.status == 2);
    CHECK((ended.said.find("fewer than the threads of all 2 processes together (" + together + ")") !=
           std::string::npos) == !paced);
  }
}
