// Tests that reports of runs with many rounds, whose intervals are sent while the run is under way, miss
// nothing.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

TEST_CASE(
    "a run of 600 rounds reports the computation of all of them, with one process a site and with two") {
  const Folder folder;
  const double step_s = 0.004;
  const std::vector<std::string> settings = {"strategy.method=ddp",   "platform.sites=2",
                                             "compute.step_time=4ms", "workload.global_batch_sequences=2",
                                             "workload.tokens=76800", "model.vocabulary=64",
                                             "model.d_model=16"};
  const Ended ended = run(train(settings, {"--local", "--paced", "--output", folder / "run.json"}));
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  const auto report = nlohmann::json::parse(content(folder / "run.json"));
  REQUIRE(report["round"]["count"] == 600);
  CHECK(report["round_durations_s"].size() == 600);
  for (const auto& site : report["sites"]) {
    // Sleeping takes at least the step time. Without the first 512 rounds it would be a sixth of that.
    CHECK(site["compute_s"].get<double>() >= step_s);
    CHECK(site["compute_s"].get<double>() < report["round"]["duration_s"].get<double>());
  }
  CHECK(report["round"]["exposed_communication_s"].get<double>() > 0);
  CHECK(!report["critical_path"].empty());
}

TEST_CASE("the report has the norms of the last step and of the last round's outer steps") {
  const Folder folder;
  const Ended ended =
      run(train({"strategy.method=diloco", "platform.sites=2", "workload.tokens=65536"},
                {"--local", "--log", folder / "steps.jsonl", "--output", folder / "run.json"}));
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  double last = 0, outer = 0;
  int steps = 0;
  std::ifstream log(folder / "steps.jsonl");
  for (std::string text; std::getline(log, text);) {
    const auto line = nlohmann::json::parse(text);
    if (line["kind"] == "step") {
      last = line["update_norm"].get<double>();
      ++steps;
    }
    if (line["kind"] == "outer_step") outer = line["update_norm"].get<double>();
  }
  REQUIRE(steps == 16);
  const auto report = nlohmann::json::parse(content(folder / "run.json"));
  const auto& norms = report["validation"]["sites"][0]["norms"];
  CHECK(norms["update"].get<double>() == doctest::Approx(last).epsilon(1e-9));
  CHECK(norms["outer_update"].get<double>() == outer);
  CHECK(norms["gradient"].get<double>() > 0);
  CHECK(outer > 0);
}

TEST_CASE("sites validate after every validation_rounds-th round and after the last one") {
  const Folder folder;
  // Five rounds of 16 steps.
  const Ended ended = run(train(
      {"strategy.method=diloco", "platform.sites=2", "workload.tokens=327680", "trainer.validation_rounds=2"},
      {"--in-turn", "--log", folder / "steps.jsonl", "--output", folder / "run.json"}));
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  std::vector<std::pair<std::int64_t, std::string>> validations;
  double last_loss = 0;
  std::ifstream log(folder / "steps.jsonl");
  for (std::string text; std::getline(log, text);) {
    const auto line = nlohmann::json::parse(text);
    if (line["kind"] != "validation") continue;
    validations.emplace_back(line["round"].get<std::int64_t>(), line["site"].get<std::string>());
    last_loss = line["loss"].get<double>();
  }
  CHECK(validations ==
        std::vector<std::pair<std::int64_t, std::string>>{
            {1, "site-0"}, {1, "site-1"}, {3, "site-0"}, {3, "site-1"}, {4, "site-0"}, {4, "site-1"}});
  const auto report = nlohmann::json::parse(content(folder / "run.json"));
  CHECK(report["validation"]["sites"][1]["loss"].get<double>() == doctest::Approx(last_loss).epsilon(1e-9));
}

TEST_CASE("the shares in the summary that a run prints add up to 100 %") {
  std::string command;
  for (const std::string& word :
       train({"strategy.method=diloco", "platform.sites=2", "workload.tokens=65536", "compute.step_time=30ms",
              "workload.global_batch_sequences=96", "compute.straggler_share=0.3",
              "compute.straggler_factor=4", "compute.straggler_lasts=run", "seed=3"},  // one site is slow
             {"--local", "--paced"}))
    command += "'" + word + "' ";
  std::string printed;
  FILE* const out = ::popen((command + "2>/dev/null").c_str(), "r");
  REQUIRE(out != nullptr);
  char part[256];
  while (std::fgets(part, sizeof part, out) != nullptr) printed += part;
  REQUIRE(::pclose(out) == 0);
  CAPTURE(printed);
  const auto percent = [&](const std::string& name) {
    const std::size_t at = printed.find(name + ' ');
    return at == std::string::npos ? -1000 : std::stod(printed.substr(at + name.size()));
  };
  CHECK(percent("utilisation") > 10);
  CHECK(percent("exposed communication") > 0);
  CHECK(percent("idle") > 20);  // so that an error of one per cent of it shows
  CHECK(std::abs(percent("utilisation") + percent("exposed communication") + percent("idle") - 100) <= 0.16);
}
