// Tests one training with several seeds: mean and spread of the measured values.
#include <doctest/doctest.h>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;
using nlohmann::json;

TEST_CASE("--seeds: each seed's perplexity is that of its own run, with their mean and standard deviation") {
  const Folder folder;
  const Ended ended = run(train(kShort, {"--in-turn", "--seeds", "3", "--seed", "7", "--output",
                                         folder / "all.json", "--log", folder / "steps.jsonl"}));
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  const json report = json::parse(content(folder / "all.json"));
  REQUIRE(report["seeds"]["n"] == 3);
  std::vector<double> x;
  for (const json& one : report["seeds"]["runs"]) {
    CHECK(one["seed"] == 7 + x.size());
    x.push_back(one["perplexity"]);
  }
  REQUIRE(x.size() == 3);
  CHECK(x[0] == report["quality"]["perplexity"].get<double>());
  REQUIRE(run(train(kShort, {"--in-turn", "--seed", "9", "--output", folder / "third.json"})).status == 0);
  CHECK(json::parse(content(folder / "third.json"))["quality"]["perplexity"].get<double>() == x[2]);
  const double mean = (x[0] + x[1] + x[2]) / 3;
  const double squares =
      (x[0] - mean) * (x[0] - mean) + (x[1] - mean) * (x[1] - mean) + (x[2] - mean) * (x[2] - mean);
  CHECK(squares > 0);
  CHECK(report["seeds"]["perplexity"]["mean"].get<double>() == doctest::Approx(mean).epsilon(1e-12));
  CHECK(report["seeds"]["perplexity"]["standard_deviation"].get<double>() ==
        doctest::Approx(std::sqrt(squares / 2)).epsilon(1e-9));
  for (const char* log : {"steps.jsonl", "steps.seed-8.jsonl", "steps.seed-9.jsonl"})
    CHECK(fs::exists(folder / log));
}

TEST_CASE("the log says of each transfer how much of it was exposed") {
  const Folder folder;
  REQUIRE(run(train({"workload.tokens=32768", "platform.sites=2", "strategy.method=streaming_diloco",
                     "strategy.local_steps=4", "strategy.fragments=2", "strategy.overlap_steps=2"},
                    {"--local", "--log", folder / "steps.jsonl"}))
              .status == 0);
  for (const char* log : {"steps.jsonl", "steps.rank-1.jsonl"}) {
    std::ifstream file(folder / log);
    int transfers = 0;
    for (std::string line; std::getline(file, line);) {
      const json one = json::parse(line);
      if (one["kind"] != "transfer") continue;
      ++transfers;
      CHECK(one["operation"].get<std::string>().starts_with("average fragment"));
      CHECK(one["exposed_s"].get<double>() >= 0);
      CHECK(one["exposed_s"].get<double>() <= one["transfer_s"].get<double>() + 1e-9);
    }
    CHECK(transfers == 2 * 2);  // 8 steps: 2 rounds of 2 fragments
  }
}

TEST_CASE("the log says of each bucket what the backward pass hid, and of the last one that it was exposed") {
  const Folder folder;
  REQUIRE(
      run(train({"workload.tokens=32768", "platform.sites=2", "strategy.method=ddp", "strategy.fragments=2"},
                {"--local", "--log", folder / "steps.jsonl"}))
          .status == 0);
  for (const char* log : {"steps.jsonl", "steps.rank-1.jsonl"}) {
    std::ifstream file(folder / log);
    int first = 0, last = 0;
    double hidden_s = 0;
    for (std::string line; std::getline(file, line);) {
      const json one = json::parse(line);
      if (one["kind"] != "transfer") continue;
      const double took_s = one["transfer_s"], exposed_s = one["exposed_s"];
      if (one["operation"] == "average bucket 0") {
        ++first;
        hidden_s += took_s - exposed_s;
      } else {
        ++last;
        CHECK(one["operation"] == "average bucket 1");
        CHECK(exposed_s == doctest::Approx(took_s).epsilon(1e-9));
      }
    }
    CHECK(first == 8);  // numbers of steps
    CHECK(last == 8);
    CHECK(hidden_s > 0);
  }
}
