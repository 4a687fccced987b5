// Tests of the report page of a measured run.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/experiments/measured_by_simulation.hpp"
#include "tests/experiments/report/report_page.hpp"

using namespace fomoe::tests;

TEST_CASE("a measured run shows the timeline of a round if it has one, else each site's mean round") {
  const Folder folder;
  write_measured_run(folder / "measured.json", kTwoSites, {}, {});
  json run = json::parse(read_all(folder / "measured.json"));
  std::string page = page_of(folder, "measured.json");
  check_nesting(page);
  CHECK(page.find("<h3>The mean round of each site</h3>") != std::string::npos);
  const json drawn = charts(page)[0];
  REQUIRE(drawn["labels"] == json({"site-0", "site-1"}));
  double site_s = 0;
  for (const json& series : drawn["series"]) site_s += series["values"][0].get<double>();
  CHECK(site_s == doctest::Approx(run["round"]["duration_s"].get<double>()).epsilon(1e-6));

  // A newer report of fomoe-train has a round_timeline, in the form of a simulated run's.
  run["round_timeline"] = simulated(folder)["round_timeline"];
  write_all(folder / "measured.json", run.dump());
  page = page_of(folder, "measured.json");
  CHECK(page.find("<h3>Timeline of a round</h3>") != std::string::npos);
  CHECK(page.find("<h3>The mean round of each site</h3>") == std::string::npos);
  CHECK(charts(page)[0]["kind"] == "timeline");
}

TEST_CASE("validation and checkpoints have a colour, an entry of the legend and a row of their own") {
  const Folder folder;
  write_measured_run(folder / "measured.json", kTwoSites, {}, {});
  json run = json::parse(read_all(folder / "measured.json"));
  CHECK(charts(page_of(folder, "measured.json"))[0]["series"].size() == 3);  // none without upkeep
  const double duration_s = run["round"]["duration_s"];
  for (json& site : run["sites"]) {
    site["upkeep_s"] = 0.25 * duration_s;
    site["idle_s"] = std::max(0.0, site["idle_s"].get<double>() - 0.25 * duration_s);
  }
  run["round"]["upkeep_s"] = 0.25 * duration_s;
  run["critical_path"].push_back(
      {{"what", "validation, checkpoints, logs"}, {"site", "site-1"}, {"kind", "upkeep"}, {"seconds", 1}});
  write_all(folder / "measured.json", run.dump());
  std::string page = page_of(folder, "measured.json");
  check_nesting(page);
  json series = charts(page)[0]["series"];
  REQUIRE(series.size() == 4);  // the fourth colour
  CHECK(series[3]["name"] == "validation, checkpoints, logs");
  CHECK(series[3]["values"][0].get<double>() > 0);
  CHECK(page.find("<td>upkeep</td>") != std::string::npos);

  run["round_timeline"] = simulated(folder)["round_timeline"];
  run["round_timeline"]["spans"].push_back({{"node", 1},
                                            {"kind", "upkeep"},
                                            {"what", "validation, checkpoints, logs"},
                                            {"start_s", 0},
                                            {"end_s", 0.5}});
  write_all(folder / "measured.json", run.dump());
  series = charts(page_of(folder, "measured.json"))[0]["series"];
  REQUIRE(series.size() == 4);
  CHECK(series[3]["name"] == "validation, checkpoints, logs");
  CHECK(series[3]["spans"].size() == 1);

  run["critical_path"].back()["kind"] = "rest";
  write_all(folder / "measured.json", run.dump());
  const Ran ran = run_in(folder.path(), "fomoe report measured.json --output report.html");
  CHECK(ran.exit_status == 2);
  CHECK(ran.err.find("got \"rest\"; expected \"compute\", \"transfer\" or \"upkeep\"") != std::string::npos);
}
