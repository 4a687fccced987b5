// Tests that commands which answer the same question give the same answer.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/explore/grid.hpp"
#include "experiments/text/human.hpp"
#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe;
using namespace fomoe::tests;
using nlohmann::json;

std::string said(const std::string& command) {
  const Ran ran = run_in(source_dir(), "fomoe " + command);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return ran.out;
}
json answered(const std::string& command) { return json::parse(said(command + " --output -")); }

// A run of more than an hour whose links die after some minutes and stay dead, so that nearly no run ends.
const std::string kNeverEnds =
    " --set workload.tokens=5e9 --set failures.link_mtbf=10min --set failures.links_stay_dead=true --set "
    "failures.checkpoint_cost=1s --set prices.gpu_hour=2USD --set energy.gpu_power=700W --set "
    "energy.idle_share=0.2 ";

}  // namespace

TEST_CASE("rows of a sweep do not depend on the order of their values") {
  const std::string question =
      kTwoSites +
      " --engine closed-form --set compute.mfu=0.4 --set compute.peak_flops=989TFLOPS "
      "--set prices.gpu_hour=2USD --unset compute.step_time ";
  for (const char* key : {"compute.tensor_parallel", "compute.sharded"}) {
    for (const char* values : {"4,2,1", "1,2,4", "2,4,1"}) {
      CAPTURE(key);
      CAPTURE(values);
      const json rows = answered("sweep " + question + "--vary " + key + '=' + values)["rows"];
      REQUIRE(rows.size() == 3);
      CHECK(rows[0]["cost_total"] != rows[1]["cost_total"]);  // other numbers of GPUs
      for (const json& row : rows) {
        const json one =
            answered("simulate " + question + fmt::format("--set {}={}", key, row[key].get<int>()));
        CHECK(row["wall_clock_s"] == one["wall_clock_s"]);
        CHECK(row["cost_total"] == one["cost"]["cost_total"]);
      }
    }
  }
}

TEST_CASE("explain: where it simulates, the cost is that of the simulated time") {
  const std::string question = kTwoSites + " --set network_model.host=linux --set prices.gpu_hour=1000USD ";
  const std::string explained = said("explain " + question);
  REQUIRE(explained.find("wall clock by simulation") != std::string::npos);
  const double simulated = answered("simulate " + question)["cost"]["cost_total"],
               formula = answered("simulate --engine closed-form " + question)["cost"]["cost_total"];
  REQUIRE(fmt::format("{:.2f}", simulated) != fmt::format("{:.2f}", formula));
  CHECK(explained.find(fmt::format("= {:.2f} USD\n", simulated)) != std::string::npos);
}

TEST_CASE("the command of a row of a plan takes out what the plan's command takes out") {
  const Folder folder;
  write_all(folder / "s.toml",
            read_all(kTwoSites) + "\n[failures]\nsite_mtbf = \"20s\"\ncheckpoint_cost = \"1s\"\n");
  const std::string plan = "plan '" + (folder / "s.toml") +
                           "' --unset failures --vary strategy.method=diloco --vary strategy.local_steps=16 ";
  CHECK(has(said(plan), " --unset failures --set strategy.method=diloco"));
  const json row = answered(plan)["frontier"][0];
  const std::string command = row["command"];
  CHECK_MESSAGE(has(command, "--unset failures "), command);
  const json run = answered(command.substr(std::string("fomoe ").size()));
  CHECK(run["wall_clock_s"] == row["simulated"]["wall_clock_s"]);
  CHECK_FALSE(run.contains("goodput"));
}

TEST_CASE("a run that never ends is not cheap") {
  const json run = answered("simulate " + kTwoSites + kNeverEnds);
  REQUIRE(run["goodput"]["finish_p50_s"].is_null());
  CHECK_FALSE(run["goodput"].contains("cost_p50"));
  for (const char* limit : {"cost=1e9", "energy=1e9kWh"}) {
    const Ran simulated =
        run_in(source_dir(), "fomoe simulate " + kTwoSites + kNeverEnds + "--within " + limit);
    CHECK_MESSAGE(simulated.exit_status == 3, limit);
    const Ran planned =
        run_in(source_dir(), "fomoe plan " + kTwoSites + kNeverEnds +
                                 "--vary strategy.method=diloco --vary strategy.local_steps=16 "
                                 "--within " +
                                 limit);
    CHECK_MESSAGE(planned.exit_status == 3, planned.out);
  }
  const std::string compared =
      said("compare " + kTwoSites + kNeverEnds + "--case '' --case strategy.local_steps=16");
  CHECK_MESSAGE(has(compared, "unlimited"), compared);
}

TEST_CASE("energy is that of the median run with failures, as time and cost are") {
  const std::string failing =
      kTwoSites +
      " --set workload.tokens=1e9 --set failures.site_mtbf=5min --set "
      "failures.checkpoint_cost=10s --set energy.gpu_power=700W --set energy.idle_share=0.2 ";
  const json run = answered("simulate " + failing);
  const double without = run["cost"]["energy_kwh"], median = run["goodput"]["energy_p50_kwh"];
  CHECK(median > 1.05 * without);
  const double between = (median + without) / 2;
  CHECK(run_in(source_dir(), "fomoe simulate " + failing + fmt::format("--within energy={:.6f}kWh", between))
            .exit_status == 3);
  const json plan = answered(
      "plan " + failing + "--vary strategy.method=diloco --vary strategy.local_steps=16 --minimise energy");
  const json row = plan["recommended"];
  const json same = answered(row["command"].get<std::string>().substr(std::string("fomoe ").size()));
  CHECK(row["simulated"]["energy_kwh"] == same["goodput"]["energy_p50_kwh"]);
}

TEST_CASE("the time and cost to the same loss are those of the median run with failures") {
  const std::string failing = kTwoSites +
                              " --set workload.tokens=1e9 --set failures.site_mtbf=5min --set "
                              "failures.checkpoint_cost=10s --set prices.gpu_hour=2USD --set "
                              "quality.equal_loss_factor=1.1 ";
  const json run = answered("simulate " + failing);
  CHECK(run["quality"]["time_to_equal_loss_s"].get<double>() ==
        doctest::Approx(1.1 * run["goodput"]["finish_p50_s"].get<double>()));
  CHECK(run["quality"]["cost_to_equal_loss"].get<double>() ==
        doctest::Approx(1.1 * run["goodput"]["cost_p50"].get<double>()));
  CHECK(has(
      said("simulate " + failing),
      "1.1 times the compute, " + commands::human_time(1.1 * run["goodput"]["finish_p50_s"].get<double>())));
}

TEST_CASE("memory per site is that of the site whose GPUs are fullest") {
  const std::string unequal = "experiments/scenarios/unequal-sites.toml --engine closed-form ";
  const json rows = answered("sweep " + unequal + "--vary strategy.local_steps=16,32")["rows"];
  const double fullest = rows[0]["memory_bytes_per_site"];
  const std::string text = said("simulate " + unequal + "--set strategy.local_steps=16");
  CHECK_MESSAGE(has(text, commands::human_bytes(fullest)), text);
}

TEST_CASE("the latency of a store is a latency") {
  const std::string far =
      kTwoSites +
      " --set platform.sites=4 --set strategy.method=diloco --set platform.bandwidth=10Gbps "
      "--set platform.latency=1ms --set platform.store.latency=20s --set "
      "strategy.collective=store ";
  CHECK(has(said("compare " + far + "--case ''"), "mostly for latency"));
  const json run = answered("simulate " + far + "--engine closed-form");
  const auto inputs = run["sensitivity"];
  const auto latencies = std::find_if(inputs.begin(), inputs.end(),
                                      [](const json& input) { return input["input"] == "latencies"; });
  REQUIRE(latencies != inputs.end());
  const json more =
      answered("simulate " + far + "--engine closed-form --set network_model.latency_factor=1.1");
  CHECK((*latencies)["more_wall_clock_s"].get<double>() ==
        doctest::Approx(more["wall_clock_s"].get<double>()).epsilon(1e-9));
}

TEST_CASE("compare says what the closed form leaves out") {
  const std::string cases = kTwoSites + " --set platform.sites=4 --case '' --case strategy.quorum=3 ";
  CHECK(has(said("compare " + cases + "--engine closed-form"),
            "The closed form leaves out rounds that go on without slow sites (strategy.quorum)"));
  CHECK_FALSE(has(said("compare " + cases), "leaves out"));
}

TEST_CASE("an exported page names the settings of its command line, and has the scenario's own overlap") {
  const Folder folder;
  said("explore " + kTwoSites + " --set strategy.method=ddp --unset strategy.expert_overlap --export '" +
       (folder / "page.html") + "'");
  const std::string page = read_all(folder / "page.html");
  CHECK(has(page, R"("options":" --unset strategy.expert_overlap --set strategy.method=ddp")"));
  const json wide = explore::grid_of(
      {kTwoSites,
       {"platform.sites=16", "model.experts=16", "strategy.method=fomoe", "!strategy.expert_overlap"}});
  CHECK(wide["grid"]["blocks"].contains("fomoe||16"));
  const json& controls = wide["controls"];
  const auto overlap = std::find_if(controls.begin(), controls.end(), [](const json& control) {
    return control["key"] == "strategy.expert_overlap";
  });
  REQUIRE(overlap != controls.end());
  CHECK((*overlap)["value"] == "16");
}

TEST_CASE("plan does not doubt an exact closed form because sites fail") {
  const std::string text = said("plan " + kTwoSites +
                                " --set failures.site_mtbf=60s --set failures.checkpoint_cost=5s --vary "
                                "strategy.method=diloco --vary strategy.local_steps=16 --vary "
                                "strategy.payload_dtype=bf16");
  CHECK_MESSAGE(has(text, "computed by the closed form\n"), text);
  CHECK_FALSE(has(text, "can have an error of that size"));
}

TEST_CASE("cost has the FLOPs of simulate where tokens choose the experts of their site") {
  const Folder folder;
  write_all(folder / "routing.csv",
            "layer,expert,site,count\n0,0,site-0,90\n0,1,site-0,10\n0,0,site-1,10\n0,1,site-1,90\n");
  const std::string local = kTwoSites +
                            " --set model.layers=1 --set model.experts=2 --set model.active_experts=1 --set "
                            "strategy.skip_token=true --set strategy.routing_counts='" +
                            (folder / "routing.csv") + "' ";
  const json run = answered("simulate " + local), cost = answered("cost " + local);
  const json even = answered("cost " + kTwoSites +
                             " --set model.layers=1 --set model.experts=2 --set model.active_experts=1 --set "
                             "strategy.skip_token=true");
  CHECK(cost["flops_per_token"] == run["flops_per_token"]);
  CHECK(cost["flops_per_token"].get<double>() > even["flops_per_token"].get<double>());
}
