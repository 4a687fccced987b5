// Tests of `fomoe solve --target loss=…`, through the program.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;
using nlohmann::json;

json answer_of(const std::string& command) {
  const Ran ran = run_in(source_dir(), command + " --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return json::parse(ran.out);
}

}  // namespace

TEST_CASE("solve: the largest K within a loss, by published runs, which are asked without [quality]") {
  const std::string scenario =
      kTwoSites +
      " --set model.dense_parameters=1e9 --set model.sequence_length=2048 --set workload.tokens=20e9 --set "
      "strategy.method=diloco --set platform.sites=4 --unset strategy.expert_overlap";
  const json answer =
      answer_of("fomoe solve " + scenario + " --for strategy.local_steps --target loss=1.5%")["answers"][0];
  CHECK(answer["answer"] == "largest");
  CHECK(answer["target_value"] == 1.5);
  const auto loss_at = [&](const std::string& steps) {
    const json run =
        answer_of("fomoe simulate " + scenario +
                  " --engine closed-form --set quality.model=published --set strategy.local_steps=" + steps);
    return run["quality"]["loss"]["points"].get<double>();
  };
  const auto most = static_cast<int>(answer["value"].get<double>());
  CHECK(loss_at(std::to_string(most)) <= 1.5);
  CHECK(loss_at(std::to_string(most + 1)) > 1.5);
  CHECK(answer["reached"].get<double>() == doctest::Approx(loss_at(std::to_string(most))).epsilon(1e-12));
}

TEST_CASE("solve: a loss that published runs do not cover has a reason") {
  const Ran refused =
      run_in(source_dir(), "fomoe solve " + kTwoSites + " --for strategy.local_steps --target loss=2");
  CHECK(refused.exit_status == 2);
  CHECK(refused.err ==
        "fomoe: --target: got \"loss=2\"; expected a percentage above 0 and of at most 100: the loss above "
        "that of "
        "data-parallel training; for example --target compute_utilization=0.95, --target wall_clock=3d, "
        "--target cost=5000, --target energy=800, --target tokens_per_s=1e6 or --target loss=2%"
        "\n");
  const Ran ran =
      run_in(source_dir(), "fomoe solve " + kTwoSites +
                               " --set strategy.expert_overlap=1 --for strategy.local_steps --target "
                               "loss=2%");
  CHECK(ran.exit_status == 2);
  CHECK_MESSAGE(ran.err.find("loss is unknown: ") != std::string::npos, ran.err);
  CHECK_MESSAGE(ran.err.find("1 of 2 sites hold an expert") != std::string::npos, ran.err);
}

TEST_CASE("solve: a loss is refused for the scenario's own reasons, and no link is said to change it") {
  const std::string scenario =
      "fomoe solve " + kTwoSites +
      " --set model.dense_parameters=1e9 --set model.sequence_length=2048 --set workload.tokens=20e9 --set "
      "strategy.method=diloco --engine closed-form --unset strategy.expert_overlap --for "
      "strategy.local_steps ";
  const Ran nine = run(scenario + "--set platform.sites=9 --target loss=1%");
  CHECK_MESSAGE(has(nine.err, "9 replicas; at most 8 are covered"), nine.err);
  CHECK_FALSE(has(nine.err, "local_steps"));
  const Ran none = run(scenario + "--set platform.sites=4 --target loss=0.01%");
  CHECK_MESSAGE(has(none.out, "no value reaches the target"), none.out);
  CHECK_FALSE(has(none.out, "waits"));
  CHECK_FALSE(has(none.out, "streams"));
}

TEST_CASE("solve: losses of one packet in millions, and sites that fail once in months, are tried") {
  const std::string scenario =
      "fomoe solve " + kTwoSites + " --set strategy.method=diloco --engine closed-form ";
  const json rare = answer_of(scenario +
                              "--set platform.latency=50ms --set network_model.host=linux --for "
                              "network_model.loss_rate --target compute_utilization=0.5");
  CHECK(rare["answers"][0]["answer"] == "largest");
  CHECK(rare["answers"][0]["value"].get<double>() < 1e-4);
  const json months = answer_of(scenario +
                                "--set failures.site_mtbf=7d --set failures.restart_time=1h --set "
                                "failures.checkpoint_cost=60s --set workload.tokens=5e12 --for "
                                "failures.site_mtbf --target wall_clock=53.4d");
  CHECK(months["answers"][0]["answer"] == "smallest");
  CHECK(months["answers"][0]["value"].get<double>() > 12 * 86400.0);  // 1e6 s were the largest value tried
}
