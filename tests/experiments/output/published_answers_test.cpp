// Tests of what the commands say of the loss by published runs.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {

// A dense model of 1e9 parameters on 20 tokens each: 38,147 steps of 256 sequences of 2048 tokens.
const std::string kScenario =
    " tests/ideal/two-sites.toml --set model.dense_parameters=1e9 --set model.sequence_length=2048 --set "
    "workload.tokens=20e9 --set platform.sites=4 --set strategy.method=diloco ";
const std::string kPublished = kScenario + "--set quality.model=published ";

std::string text(const std::string& command) {
  const Ran ran = run("fomoe " + command);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return ran.out;
}

}  // namespace

TEST_CASE("simulate: the loss by published runs, amounts to equal loss as ranges, and what is not covered") {
  const std::string command = "simulate" + kPublished + "--set strategy.local_steps=100 --sensitivity none ";
  const std::string answer = text(command);
  // The specification's example A: 1.9546 ± 1.6481 points; tokens 1.413 and 1.493 times.
  has(answer,
      "loss +1.95 % (80 % interval +0.31 to +3.60 %; 4 studies) against tuned data-parallel training of the "
      "same model on the same tokens; nearest of the published runs: khaled-1000M-Nesterov0.7-K50-M4, ");
  has(answer, "to the same loss: 1.41 to 1.49 (80 % interval 1.05 to 2.17) times the tokens, ");
  has(answer, " rounds\nnot covered: other data, tokenizers and sequence lengths than those of the rows\n");
  const json report = json::parse(text(command + "--output -"));
  const json &loss = report["quality"]["loss"], &to = report["quality"]["to_equal_loss"];
  CHECK_FALSE(report["quality"].contains("equal_loss_factor"));  // no point where only an interval is known
  CHECK_FALSE(report["quality"]["known"].get<bool>());           // the perplexity
  CHECK(loss["points"].get<double>() == doctest::Approx(1.9546085219).epsilon(1e-9));
  CHECK(loss["high"].get<double>() - loss["points"].get<double>() ==
        doctest::Approx(1.6480841050).epsilon(1e-9));
  // The tokens are rounded up to whole steps, so that they differ from 2e10 by less than 1e-5.
  CHECK(to["factor"]["low"].get<double>() == doctest::Approx(1.0543405201).epsilon(1e-5));
  CHECK(to["factor"]["centre_low"].get<double>() == doctest::Approx(1.4130216808).epsilon(1e-5));
  CHECK(to["factor"]["centre_high"].get<double>() == doctest::Approx(1.4929881514).epsilon(1e-5));
  CHECK(to["factor"]["high"].get<double>() == doctest::Approx(2.1744873538).epsilon(1e-5));
  for (const char* amount : {"wall_clock_s", "tokens", "rounds"}) {
    const double whole = amount == std::string("rounds") ? report["round"]["count"].get<double>()
                                                         : report[amount].get<double>();
    CHECK(to[amount]["high"].get<double>() ==
          doctest::Approx(whole * to["factor"]["high"].get<double>()).epsilon(1e-12));
  }
  CHECK(report["scenario"]["quality"]["mixtures"] == "dense-rows");
}

TEST_CASE(
    "simulate: refusals of published runs are listed, and methods without an approximation have no penalty") {
  const auto answer = [](const std::string& changes) {
    return text("simulate" + kPublished + "--sensitivity none " + changes);
  };
  const std::string refused = answer("--set strategy.local_steps=2000 --set strategy.payload_dtype=int2");
  has(refused,
      "loss against data-parallel training: UNKNOWN, because published runs do not cover it:\n"
      "  2 bits on the wire; at least 4 are covered\n"
      "  19.0735 rounds; at least 20 are covered");
  CHECK(refused.find("to the same loss") == std::string::npos);
  has(answer("--set strategy.method=ddp"), "loss: that of data-parallel training, which this method is");
  has(answer("--set strategy.method=ddp --set strategy.payload_dtype=int8"),
      "  method ddp with int8 gradients; the rows cover ddp, diloco");
  has(answer("--set strategy.method=demo"), "  method demo with top-k gradients; the rows cover ddp, diloco");
  has(answer("--set strategy.outer_optimizer=average"), "  method diloco with outer_optimizer average; ");
  has(answer("--set strategy.method=streaming_diloco --set strategy.overlap_steps=10"),
      "  method streaming_diloco with 10 overlapped steps; ");
}

TEST_CASE(
    "mixtures of experts: dense rows of the same active parameters answer with a note, or are refused") {
  const std::string mixture =
      "simulate tests/ideal/two-sites.toml --sensitivity none --set model.preset=medium --set "
      "strategy.expert_overlap=2 "
      "--set workload.tokens=2e10 --set quality.model=published ";
  has(text(mixture), "not covered: the rows are of dense models, taken at equal active parameters");
  has(text(mixture + "--set quality.mixtures=refuse"),
      "  a mixture of experts; the rows are of dense models\n");
  // fomoe with each expert at one of two sites: nobody published such a run.
  has(text(mixture + "--set strategy.expert_overlap=1"),
      "  1 of 2 sites hold an expert; in the rows all sites hold the whole model\n");
}

TEST_CASE("compare: the level of the loss cancels, and 0 inside of the interval is \"=\"") {
  const std::string command =
      "compare" + kPublished +
      "--case strategy.local_steps=30 --case strategy.local_steps=100 --case strategy.method=ddp ";
  const std::string answer = text(command);
  // The specification's example: A with K 30 -> A.
  has(answer, "= +1.39 ± 1.54 %, P(higher) 0.88, 4 studies");
  has(answer, "\"=\": 0 lies inside of the 80 % interval.");
  has(answer, "To reach the loss of data-parallel training, it would take ");
  const json cases = json::parse(text(command + "--output -"))["cases"];
  const json& second = cases[1]["loss_against_first_case"];
  CHECK(second["points"].get<double>() == doctest::Approx(1.3856548584).epsilon(1e-9));
  CHECK(second["probability_higher"].get<double>() == doctest::Approx(0.8815718129).epsilon(1e-9));
  CHECK(second["equal"] == true);
  CHECK(cases[2]["loss_against_first_case"]["points"].get<double>() ==
        doctest::Approx(-cases[0]["report"]["quality"]["loss"]["points"].get<double>()).epsilon(1e-12));
}

TEST_CASE("list quality: all rows, those closest to a scenario first") {
  const std::string all = text("list quality");
  CHECK(all.find("\ncharles-35M-M1 ") < all.find("\ncharles-10B-M4 "));
  has(all, "Charles et al. 2025 (arXiv 2503.09799), Table 4, row 35M, M = 1");
  const Folder folder;
  write_all(folder / "s.toml", R"(
[model]
dense_parameters = 9.6e9
sequence_length = 2048
[workload]
tokens = 192e9
global_batch_sequences = 1024
[strategy]
method = "diloco"
local_steps = 30
[compute]
step_time = "1s"
[platform]
sites = 4
bandwidth = "10Gbps"
latency = "20ms"
)");
  const std::string near = text("list quality --near " + (folder / "s.toml"));
  const std::size_t line = near.find('\n');
  CHECK(near.substr(line + 1, 14) == "charles-10B-M4");
}

TEST_CASE("quality.mixtures without published runs is refused, with an example that works") {
  const Ran ran = run("fomoe simulate tests/ideal/two-sites.toml --set quality.mixtures=refuse");
  CHECK(ran.exit_status == 2);
  has(ran.err,
      "quality.mixtures: got \"refuse\" without model = \"published\"; expected mixtures only with model = "
      "\"published\"; for example --set quality.model=published");
  CHECK(run("fomoe simulate tests/ideal/two-sites.toml --set quality.mixtures=refuse --set "
            "quality.model=published")
            .exit_status == 0);
}
