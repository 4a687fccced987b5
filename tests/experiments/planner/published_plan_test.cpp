// Tests of `fomoe plan` where published runs say what settings cost in loss.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;
using nlohmann::json;

// 1e9 parameters, 20 tokens each, on four sites: 38,147 steps.
const std::string kDense =
    "tests/ideal/two-sites.toml --set model.dense_parameters=1e9 --set model.sequence_length=2048 --set "
    "workload.tokens=20e9 "
    "--set platform.sites=4 --set strategy.method=diloco ";
const std::string kFew =
    "--vary strategy.method=diloco,ddp,local_sgd --vary strategy.collective=ring --vary "
    "strategy.payload_dtype=bf16 --vary "
    "platform.sites=4 ";

json plan(const std::string& options) {
  const Ran ran = run_in(source_dir(), "fomoe plan " + options + " --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return json::parse(ran.out);
}

json simulated(const std::string& options) {
  const Ran ran = run_in(source_dir(), "fomoe simulate " + options + " --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return json::parse(ran.out);
}

}  // namespace

TEST_CASE("plan asks published runs by default: no covered K needs less time to equal loss than its choice") {
  const std::string ks = "--vary strategy.local_steps=10,30,60,100,400 ";
  const json found = plan(kDense + kFew + ks);
  CHECK(found["basis"] == "published-equal-loss");
  const json& choice = found["choice"];
  CHECK(choice["loss"]["known"] == true);
  CHECK(choice["rounds"].get<int>() >= 20);
  for (const int k : {10, 30, 60, 100}) {
    CAPTURE(k);
    const json report =
        simulated(kDense + "--set quality.model=published --set strategy.local_steps=" + std::to_string(k));
    const json& ends = report["quality"]["to_equal_loss"]["wall_clock_s"];
    const double to_equal_loss_s =
        std::sqrt(ends["centre_low"].get<double>() * ends["centre_high"].get<double>());
    CHECK(choice["value"].get<double>() <= to_equal_loss_s * 1.01);  // ties within 1 %
  }
  // The command repeats the model, so that its answer has the loss.
  CHECK(choice["command"].get<std::string>().find("--set quality.model=published") != std::string::npos);
  // Rows that no run covers come last, and need less for their run than the first row.
  const std::size_t rows = found["ranking"].size(), riskier = found["riskier_rows"];
  REQUIRE(riskier < rows);
  for (std::size_t i = 0; i < rows; ++i) {
    const json& row = found["ranking"][i];
    CHECK(row["loss"]["known"].get<bool>() == (i < rows - riskier));
    if (i > 0 && i < rows - riskier) {
      CHECK(row["value"].get<double>() * 1.01 >= choice["value"].get<double>());
      const double probability = row["probability_that_first_needs_less"];
      CHECK((probability > 0 && probability < 1));
    }
    if (i >= rows - riskier)
      CHECK(row["simulated"]["wall_clock_s"].get<double>() <
            choice["simulated"]["wall_clock_s"].get<double>());
  }
}

TEST_CASE("plan: where published runs cover no candidate, the answer is that without a quality model") {
  const json found = plan("tests/ideal/two-sites.toml --vary strategy.local_steps=16,64");
  CHECK(found["basis"] == "quality-unknown");
  const std::string why = found["why_no_choice"];
  CHECK(why.starts_with(
      "the scenario has no quality model ([quality]), and published runs, which plan asks then, cover no "
      "configuration; the unchanged scenario has "));
  CHECK(why.find("is covered") != std::string::npos);
  CHECK(found["recommended"]["command"].get<std::string>().find("quality") == std::string::npos);
}

TEST_CASE(
    "each row of a plan has the time that its command gives, also with windows and overlapping rounds") {
  const json found = plan(
      "experiments/scenarios/two-sites.toml --set model.dense_parameters=1e9 --set "
      "model.sequence_length=2048 --set "
      "workload.tokens=20e9 --set workload.global_batch_sequences=512 --set platform.sites=4 --set "
      "platform.bandwidth=1Gbps --set strategy.method=diloco --set network_model.streams=16 --set "
      "compute.gpus_per_site=8 --set compute.mfu=0.4 --set compute.peak_flops=989TFLOPS --unset "
      "strategy.expert_overlap --vary strategy.method=eager_diloco --vary "
      "strategy.collective=direct --vary strategy.local_steps=16,32 --vary "
      "strategy.payload_dtype=int8");
  REQUIRE(found["ranking"].size() >= 2);
  for (const json& row : found["ranking"]) {
    const Ran ran = run_in(source_dir(), row["command"].get<std::string>() + " --output -");
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    CHECK(row["simulated"]["wall_clock_s"].get<double>() ==
          doctest::Approx(json::parse(ran.out)["wall_clock_s"].get<double>()).epsilon(1e-12));
  }
}

TEST_CASE("plan: ports are paid by the month at equal loss, too, and free GPUs have no odds") {
  // Four ports cost more than all else, and the run takes a day: a longer run of the same month costs the
  // same.
  const std::string four = kDense + "--set network_model.host=ideal --set prices.gpu_hour=0.01USD ";
  const json found = plan(four + "--minimise cost --set prices.port_month=1600USD " + kFew +
                          "--vary strategy.local_steps=30,100");
  REQUIRE(!found["ranking"].empty());
  for (const json& row : found["ranking"]) {
    if (row["equal_loss_factor_range"].is_null()) continue;
    const double cost = row["simulated"]["cost_total"].get<double>();
    const double factor = row["equal_loss_factor_range"]["centre"].get<double>();
    CHECK(row["value"].get<double>() == doctest::Approx(6400 + (cost - 6400) * factor).epsilon(1e-9));
  }
  const json run = json::parse(run_in(source_dir(), "fomoe simulate " + four +
                                                        "--set prices.port_month=1600USD --set "
                                                        "quality.model=published --output -")
                                   .out);
  const json& to = run["quality"]["to_equal_loss"];
  const double cost = run["cost"]["cost_total"];
  CHECK(to["cost"]["centre_high"].get<double>() ==
        doctest::Approx(6400 + (cost - 6400) * to["factor"]["centre_high"].get<double>()).epsilon(1e-9));

  const json free = plan(kDense + "--minimise cost --set prices.gpu_hour=0USD " + kFew +
                         "--vary strategy.local_steps=1,30");
  CHECK_FALSE(free["ranking"].empty());
}

TEST_CASE("compare: a batch that does not divide the tokens is the same workload, another batch is not") {
  const std::string compare =
      "fomoe compare " + kDense +
      "--engine closed-form --set quality.model=published --set strategy.local_steps=30 "
      "--set workload.global_batch_sequences=1024 --case \"\" --case ";
  const Ran same = run(compare + "workload.global_batch_sequences=1025");
  REQUIRE_MESSAGE(same.exit_status == 0, same.err);
  CHECK_MESSAGE(!has(same.out, "two models or numbers of tokens"), same.out);
  const Ran other = run(compare + "workload.global_batch_sequences=2048");
  CHECK_MESSAGE(has(other.out, "two batches"), other.out);
}
