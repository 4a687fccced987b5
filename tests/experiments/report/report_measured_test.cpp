// Tests of the report page of a measured run.
#include <doctest/doctest.h>

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
