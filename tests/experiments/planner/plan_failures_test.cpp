// Tests `fomoe plan` with failures and with links that change.
#include <doctest/doctest.h>

#include "experiments/text/human.hpp"
#include "tests/experiments/planner/planned.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using nlohmann::json;

TEST_CASE("plan ranks by the median run with failures, and says what its screening leaves out") {
  const Folder folder;
  write_all(folder / "night.csv", "time,link,bandwidth,latency\n0s,uplink of *,50%,\n1h,uplink of *,100%,\n");
  const std::string options =
      " --vary strategy.method=diloco --vary strategy.local_steps=4,16 --vary strategy.collective=ring "
      "--vary "
      "strategy.payload_dtype=bf16";
  // Some site fails every 75 s on average. A run of 98 s without a checkpoint then has no failure with a
  // probability of exp(-98/75) = 27 %, so that the median run has one.
  const std::string failing = options + " --set failures.site_mtbf=300s --set failures.checkpoint_cost=20s";
  const json healthy = planned(kFourSites + options), ranked = planned(kFourSites + failing);
  const double time_s = ranked["frontier"][0]["simulated"]["wall_clock_s"];
  CHECK(time_s > 1.02 * healthy["frontier"][0]["simulated"]["wall_clock_s"].get<double>());

  const std::string trace = " --set platform.trace=" + (folder / "night.csv");
  const Ran text = run_in(source_dir(), "fomoe plan " + kFourSites + failing + trace);
  REQUIRE_MESSAGE(text.exit_status == 0, text.err);
  CHECK(text.out.starts_with(
      "The closed form, which chose the combinations that were simulated, leaves out link "
      "rates that change over time (platform.trace).\nTimes, costs and limits are those of "
      "the median run with failures.\n"));
  const Ran sweep =
      run_in(source_dir(), "fomoe sweep " + kFourSites + failing.substr(options.size()) + trace +
                               " --engine closed-form --vary strategy.local_steps=4,16 --output -");
  CHECK(sweep.err.find("the rows of a sweep leave out link rates that change over time (platform.trace) and "
                       "failures of sites and links ([failures])") != std::string::npos);
}

TEST_CASE("pages of runs and comparisons have the times and costs of the median run with failures") {
  const std::string failing = kFourSites +
                              " --set failures.site_mtbf=300s --set failures.checkpoint_cost=20s --set "
                              "prices.gpu_hour=2USD";
  const Folder folder;
  const auto to = [&](const char* name) { return " --output '" + (folder / name) + "'"; };
  const auto done = [](const Ran& ran) { REQUIRE_MESSAGE(ran.exit_status == 0, ran.err); };
  done(run_in(source_dir(), "fomoe simulate " + failing + to("run.json")));
  done(run_in(source_dir(), "fomoe compare " + failing +
                                " --case '' --case 'strategy.method=ddp failures.site_mtbf=30s'" +
                                to("both.json")));
  done(run_in(source_dir(), "fomoe sweep " + failing +
                                " --engine closed-form --vary strategy.local_steps=4,16" + to("rows.json")));
  const auto page = [&](const std::string& result) {
    done(run_in(folder.path(), "fomoe report " + result + " --output page.html"));
    return read_all(folder / "page.html");
  };
  const json run = json::parse(read_all(folder / "run.json"));
  const std::string median = commands::human_time(run["goodput"]["finish_p50_s"]),
                    without = commands::human_time(run["wall_clock_s"]);
  const std::string money = commands::human_money(run["goodput"]["cost_p50"], "USD"),
                    money_without = commands::human_money(run["cost"]["cost_total"], "USD");
  REQUIRE(median != without);
  const std::string single = page("run.json");
  CHECK(single.find("Training takes " + median + " and costs " + money +
                    " in the median run with failures; without failures, " + without + " and " +
                    money_without + ".") != std::string::npos);
  CHECK(single.find(median + ", simulated, median run with failures</title>") != std::string::npos);
  const std::string both = page("both.json");  // ddp is never without a failure for long
  CHECK(both.find("never ends") != std::string::npos);
  CHECK(both.find(median + ", simulated, median run with failures)") != std::string::npos);
  CHECK(both.find("Wall clocks and costs are those of the median run with failures") != std::string::npos);
  CHECK(page("rows.json").find("The rows leave out failures of sites and links ([failures]).") !=
        std::string::npos);
}

TEST_CASE("an answer for sites at their own pace has no policy, no checkpoints and no time-out") {
  const std::string failing = "fomoe simulate " + kFourSites +
                              " --set strategy.method=decoupled_diloco --set failures.site_mtbf=300s --set "
                              "failures.checkpoint_cost=20s";
  const Ran answered = run_in(source_dir(), failing + " --output -");
  REQUIRE_MESSAGE(answered.exit_status == 0, answered.err);
  const json goodput = json::parse(answered.out)["goodput"];
  CHECK(goodput["policy"] == "own_pace");
  CHECK(goodput["goodput"].get<double>() > 0.5);
  for (const char* key : {"checkpoint_s", "checkpoint_rounds", "timeout_s", "recommended_timeout_s"})
    CHECK(!goodput.contains(key));
  const Ran text = run_in(source_dir(), failing);
  CHECK(text.out.find("with failures, each site alone") != std::string::npos);
  CHECK(text.out.find("recommended checkpoints") == std::string::npos);
}
