// Tests of qualities and limits on the page, and of sweeps with more lines than a chart holds.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/experiments/report/report_page.hpp"

using namespace fomoe::tests;

namespace {

// The workload of the FoMoE paper's tables: small proxy, 640 steps of 1024 sequences.
const std::string kOfTable =
    " --set workload.global_batch_sequences=1024 --set workload.tokens=1.34e9 --set quality.model=paper-table"
    " --set strategy.method=diloco --set strategy.local_steps=32";

}  // namespace

TEST_CASE("a run's page shows the perplexity of its quality model, or why it is unknown") {
  const Folder folder;
  const json run = simulated(folder, kOfTable);
  REQUIRE(run["quality"]["known"] == true);
  const std::string page = page_of(folder, "run.json");
  CHECK(page.find(fmt::format("{:.4g}", run["quality"]["perplexity"].get<double>())) != std::string::npos);
  CHECK(page.find("The perplexity is unknown") == std::string::npos);

  const json outside = simulated(folder, kOfTable + " --set strategy.local_steps=7");
  REQUIRE(outside["quality"]["known"] == false);
  CHECK(page_of(folder, "run.json")
            .find("The perplexity is unknown, because the scenario is outside the range of the quality "
                  "model: ") != std::string::npos);
}

TEST_CASE("two runs of known quality are compared by time and perplexity") {
  const Folder folder;
  must_run(folder.path(),
           "fomoe simulate " + kTwoSites + kOfTable + " --set strategy.local_steps=32 --output a.json");
  must_run(folder.path(),
           "fomoe simulate " + kTwoSites + kOfTable + " --set strategy.local_steps=128 --output b.json");
  std::vector<double> perplexities;
  for (const char* name : {"a.json", "b.json"})
    perplexities.push_back(json::parse(read_all(folder / name))["quality"]["perplexity"]);
  CHECK(perplexities[0] < perplexities[1]);  // fewer synchronisations reduce quality
  bool drawn = false;
  for (const json& chart : charts(page_of(folder, "a.json b.json"))) {
    if (chart.value("x_title", "").find("perplexity") == std::string::npos &&
        chart.value("y_title", "").find("perplexity") == std::string::npos)
      continue;
    drawn = true;
    for (const double perplexity : perplexities)
      CHECK(chart.dump().find(fmt::format("{}", perplexity)) != std::string::npos);
  }
  CHECK(drawn);
}

TEST_CASE("a plan's page names its limits") {
  const Folder folder;
  must_run(folder.path(), "fomoe plan " + kTwoSites + kPrices +
                              " --vary strategy.method=diloco --vary strategy.local_steps=8,64"
                              " --within time=9h,cost=5000USD --output plan.json");
  const std::string page = page_of(folder, "plan.json");
  CHECK(page.find("wall clock at most 9 h") != std::string::npos);
  CHECK(page.find("cost at most 5,000 USD") != std::string::npos);
}

TEST_CASE("the chart of a sweep with many combinations keeps those with the shortest times") {
  const Folder folder;
  must_run(folder.path(),
           "fomoe sweep " + kTwoSites +
               " --engine closed-form --set strategy.method=diloco"
               " --vary strategy.local_steps=1..2048*2"
               " --vary platform.bandwidth=1Mbps,2Mbps,3Mbps,5Mbps,8Mbps,13Mbps,21Mbps,34Mbps,55Mbps,89Mbps"
               " --output s.json");
  const std::string page = page_of(folder, "s.json");
  CHECK(page.find("The chart shows 8 of 10 combinations of the other keys: those with the shortest times.") !=
        std::string::npos);
  const std::string chart = charts(page).front().dump();
  for (const char* slow : {"\"bandwidth_Mbps=1\"", "\"bandwidth_Mbps=2\""})
    CHECK(chart.find(slow) == std::string::npos);
  for (const char* fast : {"\"bandwidth_Mbps=3\"", "\"bandwidth_Mbps=89\""})
    CHECK(chart.find(fast) != std::string::npos);
}

TEST_CASE("a plan's page has the losses of published runs, and says which rows they do not cover") {
  const Folder folder;
  must_run(folder.path(),
           "fomoe plan " + kTwoSites +
               " --set model.dense_parameters=1e9 --set model.sequence_length=2048 --set workload.tokens=20e9"
               " --set platform.sites=4 --set strategy.method=diloco --vary strategy.method=diloco --vary "
               "strategy.local_steps=30,1024 --vary strategy.payload_dtype=bf16 --output plan.json");
  const json plan = json::parse(read_all(folder / "plan.json"));
  REQUIRE(plan["basis"] == "published-equal-loss");
  const std::string page = page_of(folder, "plan.json");
  const json& loss = plan["ranking"][0]["loss"];
  CHECK(has(page, fmt::format("{:+.2f} ({:+.2f} to {:+.2f})", loss["points"].get<double>(),
                              loss["low"].get<double>(), loss["high"].get<double>())));
  CHECK(has(page, "not covered"));
  CHECK_FALSE(has(page, ">perplexity<"));
  must_run(folder.path(), "fomoe sweep " + kTwoSites + kOfTable +
                              " --engine closed-form --vary strategy.local_steps=16,32 --output sweep.json");
  CHECK_FALSE(has(page_of(folder, "sweep.json"), "does not include model quality"));
}
