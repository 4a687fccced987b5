// Tests of `fomoe report` through the program: one page, its structure, its data, and refused input.
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/report/readers/names.hpp"
#include "tests/experiments/report/report_page.hpp"

using namespace fomoe::tests;

TEST_CASE("a simulated run: headings, a table for every chart, and no fetched resources") {
  const Folder folder;
  const json run =
      simulated(folder, " --set strategy.method=fomoe --set strategy.expert_overlap=1" + kPrices);
  const std::string page = page_of(folder, "run.json");
  check_nesting(page);
  CHECK(count(page, "<h1>") == 1);
  CHECK(count(page, "<h2>") == 1);
  for (const char* title : {"Where the time goes", "Timeline of a round", "What a site sends in a round",
                            "Faster and slower links", "If an input is 10 % smaller or larger", "Sites",
                            "Cost", "Where the numbers come from", "Scenario"})
    CHECK_MESSAGE(page.find(std::string("<h3>") + title + "</h3>") != std::string::npos, title);
  CHECK(count(page, "<figure class=\"chart\">") == 4);
  CHECK(count(page, "<summary>As a table</summary>") == 4);
  CHECK(count(page, "<canvas role=\"img\" aria-label=\"") == 4);
  CHECK(page.find("src=") == std::string::npos);
  CHECK(page.find("href=") == std::string::npos);
  CHECK(page.find("default-src 'none'") != std::string::npos);
  CHECK(page.find("MIT licence") != std::string::npos);
  CHECK(page.size() < 400'000);
  for (const json& entry : run["provenance"])
    CHECK(page.find("<div class=\"origin " + entry["origin"].get<std::string>()) != std::string::npos);
}

TEST_CASE("a result whose scenario has a title is shown with it") {
  const Folder folder;
  (void)simulated(folder, " --set name=\"Two & a half sites\"");
  CHECK(page_of(folder, "run.json").find("<h2>Two &amp; a half sites (run)</h2>") != std::string::npos);
}

TEST_CASE("a simulated run: the page has the answer of simulate, and the charts have the result's numbers") {
  const Folder folder;
  // 12 full rounds of 16 steps.
  const std::string options =
      " --set strategy.method=fomoe --set strategy.expert_overlap=2 --set strategy.local_steps=16 --set "
      "workload.tokens=" +
      std::to_string(12 * 16 * 256 * 2048);
  const json run = simulated(folder, options);
  const std::string page = page_of(folder, "run.json");
  const std::string text = run_in(folder.path(), "fomoe simulate " + kTwoSites + options).out;
  std::smatch wall_clock;
  REQUIRE(std::regex_search(text, wall_clock, std::regex("\nwall clock +(\\S.*?)  ")));
  CHECK(page.find("<dt>wall clock</dt><dd>" + wall_clock[1].str() + "</dd>") != std::string::npos);
  // Without prices, the answer has no cost; the interval is that of the command line.
  CHECK(page.find("<p>Training takes " + wall_clock[1].str() + ". 95 % of such runs would take ") !=
        std::string::npos);
  std::smatch interval;
  REQUIRE(std::regex_search(text, interval, std::regex("95 % interval: (.*?) to (.*?)\n")));
  CHECK(page.find("95 % of such runs would take " + interval[1].str() + " to " + interval[2].str() + '.') !=
        std::string::npos);
  std::smatch waits;
  REQUIRE(std::regex_search(text, waits, std::regex("; (waits for the network [^\n]*)\n")));
  CHECK(page.find("The run " + waits[1].str() + ".") != std::string::npos);

  const std::vector<json> drawn = charts(page);
  REQUIRE(drawn.size() == 4);
  CHECK(drawn[0]["kind"] == "timeline");
  const json& timeline = run["round_timeline"];
  CHECK(drawn[0]["rows"] == timeline["nodes"]);
  std::size_t spans = 0;
  for (const json& series : drawn[0]["series"]) spans += series["spans"].size();
  CHECK(spans == timeline["spans"].size());
  CHECK(timeline["duration_s"] == doctest::Approx(run["round"]["duration_s"].get<double>()).epsilon(1e-6));

  // Bytes by class of one site in the mean round, in the unit of the axis.
  CHECK(drawn[1]["labels"] == json({"dense", "experts"}));
  CHECK(drawn[1]["x_title"] == "bytes sent by a site in the mean round, MB");
  CHECK(drawn[1]["series"][0]["values"][1] ==
        doctest::Approx(run["sent_bytes_per_site"]["expert_sync"].get<double>() / 1e6));
  CHECK(drawn[2]["series"][0]["points"].size() == run["bandwidth_curve"]["points"].size());
  const json& first = run["sensitivity"][0];
  CHECK(drawn[3]["labels"][0] == first["input"]);
  CHECK(drawn[3]["series"][0]["values"][0] ==
        doctest::Approx((first["less_wall_clock_s"].get<double>() / first["wall_clock_s"].get<double>() - 1) *
                        100));
}

TEST_CASE("short names of cases and settings") {
  using fomoe::report::short_case;
  CHECK(short_case("strategy.local_steps=64 strategy.method=diloco") == "diloco K=64");
  CHECK(short_case("strategy.method=fomoe strategy.expert_overlap=2 platform.rate_factor=0.1") ==
        "fomoe O_e=2 rate_factor=0.1");
  CHECK(short_case("strategy.local_steps=8") == "K=8");
  CHECK(short_case("") == "unchanged");
  CHECK(short_case("my run") == "my run");
  CHECK(short_case("A: diloco K=64") == "A: diloco K=64");  // not an assignment of a key
}

TEST_CASE("uncertainty of a result: every input whose spread is known, and all of them together") {
  const Folder folder;
  const json run = simulated(folder, " --set compute.step_variation=0.1 --set network_model.jitter=5ms");
  REQUIRE(run["uncertainty"]["inputs"].size() == 2);
  const std::string page = page_of(folder, "run.json");
  check_nesting(page);
  CHECK(page.find("<h3>Uncertainty</h3>") != std::string::npos);
  for (const char* input : {"step time variation", "network_model.jitter", "all inputs, in quadrature"})
    CHECK_MESSAGE(page.find(input) != std::string::npos, input);
}

TEST_CASE("the bytes by class of a result are the simulated ones") {
  const Folder folder;
  const json run = simulated(folder, " --set strategy.method=fomoe --set strategy.expert_overlap=2");
  double sent = 0;
  for (const auto& item : run["sent_bytes_per_site"].items()) sent += item.value().get<double>();
  CHECK(sent == doctest::Approx(run["bytes_sent_per_site_per_round"].get<double>()).epsilon(1e-6));
}

TEST_CASE("texts in a result are escaped and cannot become markup") {
  const Folder folder;
  json run = simulated(folder);
  const std::string evil = "</script><script>alert('1')</script><img onerror=\"x\">&{{title}}";
  run["notes"] = {evil};
  run["sites"][0]["name"] = evil;
  run["scenario"]["strategy"]["method"] = evil;
  run["scenario"][evil] = evil;
  run["scenario"]["name"] = evil;
  run["provenance"][0]["what"] = evil;
  run["round_timeline"]["nodes"][0] = evil;
  run["sensitivity"][0]["input"] = evil;
  run["sent_bytes_per_site"][evil] = 1e6;
  run["bottleneck"]["link"] = evil;
  run["validation_envelope"] = {evil};
  write_all(folder / "evil<b>.json", run.dump());
  const std::string page = page_of(folder, "'evil<b>.json'");
  CHECK(page.find("<script>alert(") == std::string::npos);
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("evil<b>") == std::string::npos);
  CHECK(count(page, "&lt;/script&gt;&lt;script&gt;alert(&#39;1&#39;)") >= 9);
  const std::vector<json> drawn = charts(page);
  REQUIRE(drawn.size() == 4);
  CHECK(drawn[0]["rows"][0] == evil);
  CHECK(drawn[3]["labels"][0] == evil);
  check_nesting(page);
}

TEST_CASE("a result's page has no section for missing data, and has one for its validation") {
  const Folder folder;
  json run = simulated(folder, " --engine closed-form");
  std::string page = page_of(folder, "run.json");
  for (const char* title : {"Timeline of a round", "Cost", "With failures", "Pareto frontier", "Uncertainty"})
    CHECK_MESSAGE(page.find(std::string("<h3>") + title) == std::string::npos, title);
  CHECK(page.find("<dd>no prices given</dd>") != std::string::npos);
  CHECK(page.find("<h3>Conditions of the runs that predictions were compared with</h3>") !=
        std::string::npos);
  run.erase("validation_envelope");
  write_all(folder / "run.json", run.dump());
  CHECK(page_of(folder, "run.json")
            .find("<h3>Conditions of the runs that predictions were compared with</h3>") ==
        std::string::npos);
  for (const char* key : {"sent_bytes_per_site", "bandwidth_curve", "sensitivity", "scenario"})
    run.erase(key);
  run["validation_envelope"] = {"latency 300 ms: 3 times the maximum of the validated range"};
  write_all(folder / "run.json", run.dump());
  page = page_of(folder, "run.json");
  check_nesting(page);
  CHECK(charts(page).empty());
  CHECK(page.find("<h3>Conditions of the runs that predictions were compared with</h3>") !=
        std::string::npos);
  CHECK(page.find("<li>latency 300 ms: 3 times the maximum of the validated range</li>") !=
        std::string::npos);
  run["validation_envelope"] = json::array();
  write_all(folder / "run.json", run.dump());
  CHECK(page_of(folder, "run.json").find("The scenario is inside the ranges") != std::string::npos);
}

TEST_CASE("several results: the frontier of time and cost, by hand") {
  const Folder folder;
  const json run = simulated(folder, kPrices);
  const auto write = [&](const char* name, double wall_clock_s, double cost) {
    json changed = run;
    changed["wall_clock_s"] = wall_clock_s;
    changed["cost"]["cost_total"] = cost;
    write_all(folder / name, changed.dump());
  };
  write("quick.json", 100, 9);
  write("cheap.json", 300, 5);
  write("slow.json", 300, 9);  // as expensive as quick, as slow as cheap
  std::string page = page_of(folder, "slow.json cheap.json quick.json");
  check_nesting(page);
  CHECK(count(page, "<article>") == 4);
  CHECK(page.find("<title>quick is the fastest of 3 results: 100 s</title>") != std::string::npos);
  CHECK(page.find("<p>The fastest of 3 results is quick (") != std::string::npos);
  const std::vector<json> drawn = charts(page);
  REQUIRE(drawn.size() == 2 + 3 * 4);
  CHECK(drawn[0]["labels"] == json({"slow", "cheap", "quick"}));
  const json& frontier = drawn[1]["series"][0]["points"];
  REQUIRE(frontier.size() == 2);
  CHECK(frontier[0][0] == 5);
  CHECK(frontier[0][1] == doctest::Approx(300));  // seconds, the unit of the fastest
  CHECK(frontier[1][0] == 9);
  REQUIRE(drawn[1]["series"][1]["points"].size() == 1);

  SUBCASE("if some results have no prices, the other axis is the bytes that a site sends") {
    simulated(folder);
    page = page_of(folder, "quick.json run.json");
    CHECK(charts(page)[1]["x_title"].get<std::string>().starts_with("bytes sent per site in the run"));
  }
  SUBCASE("files of the same name are distinguished") {
    std::filesystem::create_directory(folder / "b");
    write_all(folder / "b/quick.json", run.dump());
    CHECK(page_of(folder, "quick.json b/quick.json").find("<h2>Result: quick (2)</h2>") != std::string::npos);
  }
}

TEST_CASE("a plan's result: its frontier, its methods and the command lines to paste") {
  const Folder folder;
  must_run(folder.path(),
           "fomoe plan " + kTwoSites +
               " --vary strategy.method=diloco,ddp,fomoe --vary strategy.local_steps=8..128*2 --top 4"
               " --within time=120s"
               " --output plan.json");
  const json plan = json::parse(read_all(folder / "plan.json"));
  const std::string page = page_of(folder, "plan.json");
  check_nesting(page);
  CHECK(page.find("There is no single best configuration: the scenario has no quality model") !=
        std::string::npos);
  CHECK(page.find("<p>Limits: wall clock at most 2 min 0 s.</p>") != std::string::npos);
  CHECK(page.find("<p>No configuration is possible and within the limits for: ddp.</p>") !=
        std::string::npos);
  for (const char* title : {"Frontier", "Frontier: wall clock against steps between synchronisations",
                            "The best configuration of each method",
                            "The first row, if an input is 10 % smaller or larger", "Evaluated combinations"})
    CHECK_MESSAGE(page.find(std::string("<h3>") + title + "</h3>") != std::string::npos, title);
  const std::vector<json> drawn = charts(page);
  REQUIRE(drawn.size() == 3);
  std::size_t points = 0;
  for (const json& series : drawn[0]["series"]) points += series["points"].size();
  CHECK(points == plan["frontier"].size() + 1);  // and the scenario as given
  CHECK(drawn[1]["labels"].size() == plan["methods"].size());
  CHECK(page.find("--set strategy.method=") != std::string::npos);
}

TEST_CASE("a plan's counts have all their digits, in groups of three") {
  const Folder folder;
  must_run(folder.path(), "fomoe plan " + kTwoSites + " --vary strategy.method=diloco --output plan.json");
  json plan = json::parse(read_all(folder / "plan.json"));
  plan["candidates"] = 25689;
  plan["simulated"] = 967;
  write_all(folder / "plan.json", plan.dump());
  CHECK(page_of(folder, "plan.json").find("evaluated 25,689 combinations, and 967 of them") !=
        std::string::npos);
}

TEST_CASE("a plan in which no candidate meets the limits shows the candidates without limits") {
  const Folder folder;
  const Ran planned =
      run_in(folder.path(), "fomoe plan " + kTwoSites +
                                " --vary strategy.method=diloco --vary "
                                "strategy.local_steps=8,64 --within time=1s --output plan.json");
  REQUIRE(planned.exit_status == 3);
  const json plan = json::parse(read_all(folder / "plan.json"));
  REQUIRE(plan["without_limits"].size() == 1);
  const std::string page = page_of(folder, "plan.json");
  check_nesting(page);
  CHECK(page.find("<p>The least time without limits is reached by diloco K=64") != std::string::npos);
}

TEST_CASE("a sweep's result: a line for each combination of the other axes, and every row in the table") {
  const Folder folder;
  must_run(folder.path(), "fomoe sweep " + kTwoSites +
                              " --engine closed-form --vary strategy.expert_overlap=1,2,3 --vary "
                              "strategy.local_steps=1..64*4 --output sweep.json");
  const json sweep = json::parse(read_all(folder / "sweep.json"));
  const std::string page = page_of(folder, "sweep.json");
  check_nesting(page);
  const std::vector<json> drawn = charts(page);
  REQUIRE(drawn.size() == 1);
  REQUIRE(drawn[0]["series"].size() == 2);  // O_e = 3 is impossible at two sites
  CHECK(drawn[0]["series"][0]["name"] == "O_e=1");
  const json& points = drawn[0]["series"][1]["points"];
  REQUIRE(points.size() == 4);  // K = 1, 4, 16, 64
  CHECK(points[3][0] == 64);
  REQUIRE(drawn[0]["y_title"] == "wall clock, min");
  CHECK(points[3][1].get<double>() * 60 == doctest::Approx(sweep["rows"][7]["wall_clock_s"].get<double>()));
  CHECK(count(page, "expected 1 to 2 sites;") == 4);  // the reason in the rows of O_e = 3
}

TEST_CASE("a comparison's cases are compared, and the answers of solve are drawn over their targets") {
  const Folder folder;
  must_run(folder.path(),
           "fomoe compare " + kTwoSites +
               " --case strategy.method=ddp --case strategy.method=diloco --output compare.json");
  must_run(folder.path(),
           "fomoe solve " + kTwoSites + " --for platform.bandwidth --engine closed-form --output solve.json");
  const json solve = json::parse(read_all(folder / "solve.json"));
  const std::string page = page_of(folder, "compare.json solve.json");
  check_nesting(page);
  CHECK(page.find("<h2>Comparison</h2>") != std::string::npos);
  CHECK(page.find("<h2>Result: diloco</h2>") != std::string::npos);
  const std::vector<json> drawn = charts(page);
  const json& last = drawn.back();
  CHECK(last["y_title"] == "compute utilisation, %");
  REQUIRE(last["series"][0]["points"].size() == solve["answers"].size());
  CHECK(last["x_title"] == "platform.bandwidth, Gb/s");
  CHECK(last["series"][0]["points"][0][0].get<double>() ==
        doctest::Approx(solve["answers"][0]["value"].get<double>() * 8 / 1e9));
  CHECK(last["series"][0]["points"][0][1] == 50);
}

TEST_CASE("a mistake is named, and no page is written") {
  const Folder folder;
  const json run = simulated(folder);
  const std::string remedy =
      "; for example fomoe simulate experiments/scenarios/two-sites.toml --output run.json\n";
  const auto refused = [&](const std::string& arguments, const std::string& message, int status = 2) {
    const Ran ran = run_in(folder.path(), "fomoe report " + arguments);
    CHECK(ran.exit_status == status);
    CHECK(ran.out.empty());
    CHECK_MESSAGE(ran.err == message, ran.err);
    CHECK_FALSE(std::filesystem::exists(folder / "r.html"));
  };
  const auto changed = [&](const std::string& pointer, const json& value) {
    json wrong = run;
    wrong[json::json_pointer(pointer)] = value;
    write_all(folder / "bad.json", wrong.dump());
    return "run.json bad.json --output r.html";
  };
  refused("run.json",
          "fomoe: --output: got nothing; expected - or a file that ends in .html; for example --output "
          "report.html\n");
  refused("run.json --output r.pdf",
          "fomoe: --output: got \"r.pdf\"; expected - or a file that ends in .html; for example --output "
          "result.html\n");
  refused("none.json --output r.html",
          "none.json:1: result: got no readable file; expected a file that fomoe simulate, fomoe-train run "
          "or fomoe plan wrote with --output" +
              remedy);
  write_all(folder / "bad.json", "{\n\"schema\": \"fomoe.run/1\",\n\"wall");
  refused("bad.json --output r.html",
          "bad.json:3: result: got text that is not valid JSON; expected a file that fomoe simulate, "
          "fomoe-train run or fomoe plan wrote with --output" +
              remedy);
  refused(changed("/schema", "fomoe.cost/1"),
          "bad.json:1: schema: got \"fomoe.cost/1\"; expected \"fomoe.run/1\" or \"fomoe.planner/1\" or "
          "\"fomoe.wan/1\" or \"fomoe.compare/1\" or \"fomoe.sweep/1\" or \"fomoe.solve/1\" or "
          "\"fomoe.validation/1\"" +
              remedy);
  refused(changed("/wall_clock_s", -1),
          "bad.json: wall_clock_s: got -1; expected seconds of zero or more" + remedy);
  refused(changed("/round/count", 0),
          "bad.json: round.count: got 0; expected a whole number of at least 1" + remedy);
  refused(changed("/round/compute_s", "1 s"),
          "bad.json: round.compute_s: got \"1 s\"; expected seconds of zero or more" + remedy);
  refused(changed("/sites/1/name", 7), "bad.json: sites[1].name: got 7; expected a string" + remedy);
  refused(changed("/sites", json::array()),
          "bad.json: sites: got an empty array; expected an array with at least one entry" + remedy);
  refused(changed("/provenance/0/origin", "guessed"),
          "bad.json: provenance[0].origin: got \"guessed\"; expected \"measured\", \"calibrated\", "
          "\"computed\" or \"assumed\"" +
              remedy);
  refused(changed("/round_timeline/spans/0/node", 2),
          "bad.json: round_timeline.spans[0].node: got 2; expected a whole number from 0 to 1" + remedy);
  refused(changed("/scenario", 3), "bad.json: scenario: got 3; expected an object" + remedy);
  refused(changed("/notes", "none"), "bad.json: notes: got \"none\"; expected an array" + remedy);
  write_all(folder / "chart.js", "alert(1)");
  refused("run.json --output r.html --chart-library chart.js",
          "fomoe: chart.js: got another file; expected Chart.js 3 or 4, which draws the charts of the "
          "report; for example apt-get install libjs-chart.js, or --chart-library FILE\n",
          1);
  refused("run.json --output r.html --chart-library none.js",
          "fomoe: none.js: got no readable file; expected Chart.js 3 or 4, which draws the charts of the "
          "report; for example apt-get install libjs-chart.js, or --chart-library FILE\n",
          1);
}

TEST_CASE("the examples of report --help run when pasted") {
  const Folder folder;
  std::filesystem::create_directory_symlink(source_dir() + "/experiments", folder / "experiments");
  const std::string help = run_in(folder.path(), "fomoe report --help").out;
  int lines = 0;
  std::istringstream text(help.substr(help.find("Examples:\n")));
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("  fomoe ")) continue;
    must_run(folder.path(), "sh -c '" + line + "'");
    ++lines;
  }
  CHECK(lines == 3);
}
