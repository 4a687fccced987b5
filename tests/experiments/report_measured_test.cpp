// The page of a run that took place.
#include <doctest/doctest.h>

#include "tests/experiments/measured_by_simulation.hpp"
#include "tests/experiments/report_page.hpp"

using namespace fomoe::tests;

TEST_CASE("a measured run: its round where it says when, else what each site did in the mean round") {
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

  // As fomoe-train writes it since it says when: the same form as of a simulated run.
  run["round_timeline"] = simulated(folder)["round_timeline"];
  write_all(folder / "measured.json", run.dump());
  page = page_of(folder, "measured.json");
  CHECK(page.find("<h3>Timeline of a round</h3>") != std::string::npos);
  CHECK(page.find("<h3>The mean round of each site</h3>") == std::string::npos);
  CHECK(charts(page)[0]["kind"] == "timeline");
}
