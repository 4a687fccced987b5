// Tests of `fomoe compare` and `fomoe plan` as JSON and on the page: accuracy and currency.
#include <doctest/doctest.h>

#include "experiments/text/human.hpp"
#include "tests/experiments/report/report_page.hpp"

using namespace fomoe::tests;
using fomoe::commands::human_money;
using fomoe::commands::human_percent;
using fomoe::commands::human_time;

TEST_CASE("each case of a comparison has the accuracy and the validated ranges that simulate reports") {
  const Folder folder;
  const std::string slow = " --set platform.latency=300ms";
  must_run(folder.path(),
           "fomoe compare " + kTwoSites + " --case '' --case platform.latency=300ms --output compare.json");
  const json cases = json::parse(read_all(folder / "compare.json"))["cases"];
  for (std::size_t i = 0; i < 2; ++i) {
    const json run = simulated(folder, i == 0 ? "" : slow);
    CHECK(cases[i]["report"]["accuracy"] == run["accuracy"]);
    CHECK(cases[i]["report"]["interval"] == run["interval"]);
    CHECK(cases[i]["report"]["validation_envelope"] == run["validation_envelope"]);
  }
  // The case with a latency of 300 ms lies outside of the validated ranges, and has no interval.
  REQUIRE(cases[0]["report"]["interval"].contains("low_s"));
  REQUIRE(cases[0]["report"]["validation_envelope"].empty());
  REQUIRE(cases[1]["report"]["interval"].contains("withheld"));
  REQUIRE(cases[1]["report"]["validation_envelope"].size() > 0);

  const std::string page = page_of(folder, "compare.json");
  check_nesting(page);
  CHECK(page.find("<th scope=\"col\" class=\"number\">95 % interval</th>") != std::string::npos);
  const json& ends = cases[0]["report"]["interval"];
  const std::string interval =
      human_time(ends["low_s"].get<double>()) + " to " + human_time(ends["high_s"].get<double>());
  CHECK_MESSAGE(page.find("<td class=\"number\">" + interval + "</td>") != std::string::npos, interval);
  CHECK(page.find("95 % of such runs would take " + interval) != std::string::npos);  // in the case's section
  CHECK(page.find("No interval is given, because the scenario lies outside of the conditions") !=
        std::string::npos);
  CHECK(page.find("1 of 2 results have none: they lie outside of the conditions") != std::string::npos);
}

TEST_CASE(
    "a comparison says by how much the fastest leads, what is cheapest and by how much, and which results "
    "tie") {
  const Folder folder;
  // Two results differ only in their seed, which changes nothing; ddp takes longer and sends more.
  must_run(folder.path(),
           "fomoe compare " + kTwoSites + kPrices +
               " --set platform.rate_factor=0.5 --case strategy.local_steps=16 --case "
               "'strategy.local_steps=16 seed=7' --case strategy.method=ddp --output compare.json");
  const json cases = json::parse(read_all(folder / "compare.json"))["cases"];
  const std::string page = page_of(folder, "compare.json");
  CHECK(page.find(" are the fastest of 3 results, within 2 %: ") != std::string::npos);
  CHECK(page.find(" takes as long. K=16 is also the cheapest, with ") != std::string::npos);
  const double least = cases[0]["report"]["cost"]["cost_total"],
               most = cases[2]["report"]["cost"]["cost_total"];
  CHECK(page.find(", " + human_percent(1 - least / most) + " less than ddp (" + human_money(most, "USD") +
                  ").") != std::string::npos);
  CHECK(page.find("<p>Changed from the platform&#39;s file: link rates × 0.5.</p>") != std::string::npos);
}

TEST_CASE("a comparison without accuracy, as of older versions, has no column and no sentence for it") {
  const Folder folder;
  must_run(folder.path(),
           "fomoe compare " + kTwoSites + " --case '' --case strategy.method=ddp --output compare.json");
  json compare = json::parse(read_all(folder / "compare.json"));
  for (json& one : compare["cases"]) one["report"].erase("accuracy");
  write_all(folder / "compare.json", compare.dump());
  CHECK(page_of(folder, "compare.json").find("of real runs") == std::string::npos);
}

TEST_CASE("the costs of a plan have their currency, in JSON, in CSV and on the page") {
  const Folder folder;
  const std::string plan = "fomoe plan " + kTwoSites + kPrices +
                           " --vary strategy.method=diloco,fomoe --vary strategy.local_steps=8,64"
                           " --minimise cost --output plan.";
  must_run(folder.path(), plan + "json");
  json answer = json::parse(read_all(folder / "plan.json"));
  CHECK(answer["currency"] == "USD");
  for (const char* engine : {"simulated", "closed_form"}) {
    CHECK(answer["frontier"][0][engine]["cost_total"].is_number());
    CHECK(answer["frontier"][0][engine]["currency"] == "USD");
    CHECK(answer["scenario_as_it_is"][engine]["currency"] == "USD");
  }
  must_run(folder.path(), plan + "csv");
  const std::string csv = read_all(folder / "plan.csv");
  CHECK(csv.find(",wall_clock_s,currency,cost_total,") != std::string::npos);
  CHECK(csv.find(",USD,") != std::string::npos);
  const std::string header = csv.substr(0, csv.find('\n'));
  CHECK(std::count(header.begin(), header.end(), ',') == 18);

  char amount[32];
  std::snprintf(amount, sizeof amount, "%.2f",
                answer["frontier"][0]["simulated"]["cost_total"].get<double>());
  std::string page = page_of(folder, "plan.json");
  check_nesting(page);
  CHECK(page.find("<dt>cost</dt><dd>" + std::string(amount) + " USD</dd>") != std::string::npos);
  CHECK(page.find("<th scope=\"col\" class=\"number\">cost, USD</th>") != std::string::npos);
  CHECK(charts(page)[0]["y_title"] == "cost, USD");
  CHECK(charts(page)[0]["series"][0]["points"][0][2].get<std::string>().ends_with(" USD"));
  CHECK(charts(page)[1]["x_title"] == "cost, USD");

  SUBCASE("a plan of an older version has no currency") {
    answer.erase("currency");
    write_all(folder / "plan.json", answer.dump());
    page = page_of(folder, "plan.json");
    CHECK(page.find("<dt>cost</dt><dd>" + std::string(amount) + "</dd>") != std::string::npos);
    CHECK(charts(page)[0]["y_title"] == "cost");
  }
  SUBCASE("without prices there is neither a cost nor a currency") {
    must_run(folder.path(),
             "fomoe plan " + kTwoSites + " --vary strategy.local_steps=8,64 --output free.json");
    const json free = json::parse(read_all(folder / "free.json"));
    CHECK(free["currency"].is_null());
    CHECK(free["scenario_as_it_is"]["simulated"]["cost_total"].is_null());
    CHECK(free["scenario_as_it_is"]["simulated"]["currency"].is_null());
  }
}

TEST_CASE("a sweep of words has a bar for each combination, and words are aligned like words") {
  const Folder folder;
  must_run(folder.path(), "fomoe sweep " + kTwoSites +
                              " --engine closed-form --vary strategy.method=ddp,diloco --vary "
                              "strategy.expert_overlap=2,3 --output sweep.json");
  std::string page = page_of(folder, "sweep.json");
  CHECK(page.find("<th scope=\"col\">method</th><th scope=\"col\" class=\"number\">O_e</th>") !=
        std::string::npos);
  must_run(folder.path(),
           "fomoe sweep " + kTwoSites +
               " --engine closed-form --vary strategy.method=ddp,diloco,fomoe --output words.json");
  page = page_of(folder, "words.json");
  check_nesting(page);
  const std::vector<json> drawn = charts(page);
  REQUIRE(drawn.size() == 1);
  CHECK(drawn[0]["kind"] == "bars");
  CHECK(drawn[0]["labels"] == json({"ddp", "diloco", "fomoe"}));
  CHECK(drawn[0]["ends"].size() == 3);
}

TEST_CASE("lines of a sweep that lie on each other are named") {
  const Folder folder;
  must_run(folder.path(),
           "fomoe sweep " + kTwoSites +
               " --engine closed-form --set strategy.expert_overlap=2 --vary "
               "strategy.method=ddp,diloco,fomoe --vary strategy.local_steps=1..64*4 --output s.json");
  const std::string page = page_of(folder, "s.json");
  CHECK(
      page.find("<figcaption>Wall clock as a function of strategy.local_steps. The line of diloco also shows "
                "fomoe, with the same times.</figcaption>") != std::string::npos);
}

TEST_CASE("the title of a plan states the amount that the plan minimises") {
  const Folder folder;
  must_run(folder.path(),
           "fomoe plan " + kTwoSites + kPrices +
               " --vary strategy.method=diloco --vary strategy.local_steps=8,64 --minimise cost"
               " --output plan.json");
  const std::string page = page_of(folder, "plan.json");
  const std::size_t at = page.find("No single best configuration; recommended: diloco K=");
  REQUIRE(at != std::string::npos);
  CHECK(page.substr(at, page.find('<', at) - at).ends_with(" USD"));
  CHECK(page.find("<li><code>fomoe simulate ") != std::string::npos);
}

TEST_CASE("plans, sweeps and targets say which scenario they are about, and where its numbers come from") {
  const Folder folder;
  const std::string scenario =
      kTwoSites + " --set name='Two <sites>' --set platform.rate_factor=0.5 --output one.json ";
  const auto check = [&](const std::string& command, const std::string& heading) {
    CAPTURE(command);
    must_run(folder.path(), "fomoe " + command);
    json answer = json::parse(read_all(folder / "one.json"));
    CHECK(answer["scenario"]["name"] == "Two <sites>");
    std::vector<std::string> lines;
    const json provenance = answer["provenance"];  // the same list as that of the closed form
    for (const json& entry : provenance) lines.push_back(entry["what"]);
    must_run(folder.path(),
             "fomoe simulate " + kTwoSites + " --set platform.rate_factor=0.5 --output run.json");
    const json all_provenance = json::parse(
        read_all(folder / "run.json"))["provenance"];  // the loop would not keep the document alive
    for (const json& entry : all_provenance) {
      CAPTURE(entry);
      CHECK(std::find(provenance.begin(), provenance.end(), entry) != provenance.end());
    }
    std::string page = page_of(folder, "one.json");
    check_nesting(page);
    CHECK(page.find("<h2>" + heading + " Two &lt;sites&gt; (one)</h2>") != std::string::npos);
    for (const std::string& what : lines)
      CHECK_MESSAGE(page.find("<th scope=\"row\">" + what + "</th>") != std::string::npos, what);
    // Results of older versions have neither.
    for (const char* key : {"scenario", "provenance", "methods_tried"}) answer.erase(key);
    write_all(folder / "one.json", answer.dump());
    const std::string older = page_of(folder, "one.json");
    CHECK(older.find("(one)</h2>") == std::string::npos);
    CHECK(older.find("Where the numbers come from") == std::string::npos);
    return page;
  };
  const std::string changed = "<p>Changed from the platform&#39;s file: link rates × 0.5.</p>";
  const std::string plan =
      check("plan " + scenario +
                "--vary strategy.method=diloco,ddp --vary strategy.local_steps=8 --within time=3min",
            "Plan for");
  CHECK(plan.find(changed) != std::string::npos);
  CHECK(plan.find("No configuration is possible and within the limits for: ddp.") != std::string::npos);
  CHECK(check("sweep " + scenario + "--vary strategy.local_steps=8,64", "Sweep of").find(changed) !=
        std::string::npos);
  CHECK(
      check("sweep " + scenario + "--vary platform.rate_factor=0.5,1", "Sweep of").find("Changed from the") ==
      std::string::npos);
  check("solve " + scenario + "--for platform.bandwidth", "Targets for");
}

TEST_CASE("a sweep whose first row is impossible names the scenario of the first possible row") {
  const Folder folder;
  const auto sweep = [&](const std::string& options) {
    must_run(folder.path(), "fomoe sweep " + kTwoSites +
                                " --vary strategy.expert_overlap=7,1 --set strategy.method=fomoe " + options +
                                " --output s.json");
    return json::parse(read_all(folder / "s.json"));
  };
  const json whole = sweep("--set name=Whole");
  CHECK(whole["rows"][0].contains("problem"));
  CHECK(whole["scenario"]["strategy"]["expert_overlap"] == 1);
  CHECK(page_of(folder, "s.json").find("<h2>Sweep of Whole (s)</h2>") != std::string::npos);
  CHECK_FALSE(sweep("--shard 1/2").contains("scenario"));
  CHECK(page_of(folder, "s.json").find("<h2>Sweep of s</h2>") != std::string::npos);
  CHECK(sweep("--set name=Whole --engine closed-form")["scenario"] == whole["scenario"]);
}

TEST_CASE("the shares of a critical path are those of its round, also if the mean round is shorter") {
  const Folder folder;
  // Ten rounds and a last one of a single step.
  const json run = simulated(folder, " --set workload.tokens=84410368 --set strategy.local_steps=16");
  double path_s = 0;
  for (const json& step : run["critical_path"]) path_s += step["seconds"].get<double>();
  REQUIRE(path_s > 1.02 * run["round"]["duration_s"].get<double>());
  const std::string page = page_of(folder, "run.json");
  for (const json& step : run["critical_path"]) {
    const double seconds = step["seconds"];
    CHECK(page.find("<td class=\"number\">" + human_time(seconds) + "</td><td class=\"number\">" +
                    human_percent(seconds / path_s) + "</td>") != std::string::npos);
  }
}
