// Tests of the page of a validation, and of the order in which the page of a sweep shows what decides.
#include <doctest/doctest.h>

#include "tests/experiments/report/report_page.hpp"

using namespace fomoe::tests;

namespace {

/// The errors of three measured runs, of which two are limited by communication.
json validated(const Folder& folder) {
  const std::string runs = source_dir() + "/experiments/validation/runs/";
  must_run(folder.path(), "fomoe validate " + runs + "ddp-far-small-k1-reno.json " + runs +
                              "diloco-far-small-k16-reno.json " + runs +
                              "ddp-slow-small-k1.json --output errors.json");
  return json::parse(read_all(folder / "errors.json"));
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

}  // namespace

TEST_CASE("the page of a validation says how large the errors are, and draws predicted over measured times") {
  const Folder folder;
  const json answer = validated(folder);
  const json& all = answer["groups"][0]["errors"]["wall_clock"];
  const std::string page = page_of(folder, "errors.json");
  check_nesting(page);
  CHECK(page.find("<h1>Half of 3 wall clocks were predicted within " + percent(all["median"]) + "</h1>") !=
        std::string::npos);
  CHECK(page.find("<dt>worst error</dt><dd>" + percent(all["worst"]) + "</dd>") != std::string::npos);
  CHECK(page.find(all["worst_run"].get<std::string>()) != std::string::npos);

  const json chart = charts(page)[0];
  std::size_t points = 0;
  double least = 1e300, most = 0;
  for (const json& series : chart["series"]) {
    if (series.contains("plain")) continue;
    points += series["points"].size();
    for (const json& point : series["points"]) {
      least = std::min({least, point[0].get<double>(), point[1].get<double>()});
      most = std::max({most, point[0].get<double>(), point[1].get<double>()});
    }
  }
  CHECK(points == 3);
  // The line of equal times reaches from the shortest to the longest time.
  const json line = chart["series"].back()["points"];
  CHECK(line[0][0] == least);
  CHECK(line[0][1] == least);
  CHECK(line[1][0] == most);
  CHECK(line[1][1] == most);
  CHECK(chart["x_title"] == "measured wall clock, s");
}

TEST_CASE("an error that is infinite, which JSON writes as null, is said to have no measurement") {
  const Folder folder;
  json answer = validated(folder);
  answer["runs"][0]["errors"]["wall_clock"] = nullptr;
  answer["groups"][0]["errors"]["compute"]["worst"] = nullptr;
  write_all(folder / "errors.json", answer.dump());
  CHECK(count(page_of(folder, "errors.json"), "none measured") >= 2);
}

TEST_CASE("a validation without runs or without errors is refused by name") {
  const Folder folder;
  json answer = validated(folder);
  const auto refused = [&](const char* key) {
    json broken = answer;
    broken[key] = json::array();
    write_all(folder / "errors.json", broken.dump());
    const Ran ran = run_in(folder.path(), "fomoe report errors.json --output report.html");
    CHECK(ran.exit_status == 2);
    CHECK_MESSAGE(ran.err.find(std::string(key) + ": got none") != std::string::npos, ran.err);
  };
  refused("runs");
  refused("groups");
}

TEST_CASE("the chart of a sweep has the key with the most values on its axis, and its table the cost early") {
  const Folder folder;
  must_run(folder.path(), "fomoe sweep " + kTwoSites + kPrices +
                              " --vary platform.bandwidth=1Gbps,2Gbps,4Gbps,8Gbps"
                              " --vary strategy.local_steps=8,64 --output sweep.json");
  const std::string page = page_of(folder, "sweep.json");
  const json chart = charts(page)[0];
  CHECK(chart["x_title"].get<std::string>().starts_with("platform.bandwidth"));
  CHECK(chart["series"].size() == 2);
  // The chart's table has a row for each bandwidth and a column for each K.
  CHECK(page.find("K=8</th><th scope=\"col\" class=\"number\">K=64</th></tr>") != std::string::npos);
  const std::size_t rows = page.find("<h3>All combinations</h3>");
  REQUIRE(rows != std::string::npos);
  CHECK(page.find("<p>Equal in all rows of the table: bytes sent per site and round ", rows) !=
        std::string::npos);
  CHECK(page.find(">bytes sent per site and round</th>", rows) == std::string::npos);
  CHECK(page.find(">cost, USD</th>", rows) < page.find(">utilisation</th>", rows));
}
