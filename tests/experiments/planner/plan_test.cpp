// Tests of `fomoe plan` through the program: no row of an exhaustive sweep is better than its answer.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tests/experiments/planner/planned.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {

/// Writes a quality table for the two-sites scenario, whose model has the scope below.
std::string write_quality(const Folder& folder) {
  const json cost = json::parse(run_in(source_dir(), "fomoe cost " + kTwoSites + " --output -").out);
  const json run = json::parse(run_in(source_dir(), "fomoe simulate " + kTwoSites + " --output -").out);
  const json& model = run["scenario"]["model"];
  std::string text = "# source: made up for a test\n";
  text += "# parameters: " + cost["parameters"]["total"].dump() + "\n";
  for (const char* key : {"vocabulary", "sequence_length", "experts", "active_experts"})
    text += std::string("# ") + key + ": " + model[key].dump() + "\n";
  text += "# tokens: " + run["tokens"].dump() + "\n# global_batch_sequences: 256\n";
  text += "strategy,local_steps,placement,sites,expert_overlap,perplexity,plus_minus,note\n";
  text += "ddp,1,fixed,2,2,29,,\n";
  text += "diloco,16,fixed,2,2,30,,\n";
  text += "diloco,16,fixed,2,1,34,,\n";
  text += "diloco,64,fixed,2,2,33,,\n";
  write_all(folder / "q.csv", text);
  return folder / "q.csv";
}

// The factor to equal loss by which a row is ranked.
double centre_of(const json& row) {
  return row["equal_loss_factor"].is_number() ? row["equal_loss_factor"].get<double>()
                                              : row["equal_loss_factor_range"]["centre"].get<double>();
}

}  // namespace

TEST_CASE("without a quality model the answer is a frontier that no row of an exhaustive sweep beats") {
  const std::string axes =
      " --vary strategy.method=fomoe,diloco --vary strategy.local_steps=1,2,3,5,8,13,21,34 --vary "
      "strategy.expert_overlap=1,2,3,4 --vary strategy.collective=ring,direct";
  const std::string fixed =
      " --vary strategy.payload_dtype=bf16 --vary strategy.placement=fixed --vary strategy.fragments=1 "
      "--vary "
      "strategy.overlap_steps=0";
  const json plan = planned(kFourSites + axes + fixed + " --top 30");
  CHECK(plan["schema"] == "fomoe.planner/1");
  CHECK(plan["basis"] == "quality-unknown");
  CHECK(plan["choice"].is_null());
  CHECK(
      plan["why_no_choice"].get<std::string>().starts_with("the scenario has no quality model ([quality])"));
  // Candidates: 2 collectives · 4 overlaps · 8 values of K for fomoe, and 2 · 8 for diloco.
  CHECK(plan["candidates"] == 2 * 4 * 8 + 2 * 8);
  REQUIRE(plan["frontier"].size() > 3);

  const Ran swept =
      run_in(source_dir(), "fomoe sweep " + kFourSites + axes + " --engine closed-form --output -");
  REQUIRE_MESSAGE(swept.exit_status == 0, swept.err);
  const json rows = json::parse(swept.out)["rows"];
  REQUIRE(rows.size() == 2 * 8 * 4 * 2);
  // The rows of the sweep that a plan considers, as (rounds < 20, K or O_e of fewer than all sites, K, −O_e).
  struct Possible {
    double time_s;
    bool few, partial;
    int steps, overlap;
    [[nodiscard]] auto risk() const { return std::tuple(few, partial, steps, -overlap); }
  };
  std::vector<Possible> possible;
  double fastest = 1e300;
  for (const json& row : rows) {
    if (row.contains("problem")) continue;
    const int steps = row["strategy.local_steps"],
              overlap = row["strategy.method"] == "fomoe" ? row["strategy.expert_overlap"].get<int>() : 4;
    possible.push_back({row["wall_clock_s"], row["round_count"] < 20, overlap < 4, steps, overlap});
    fastest = std::min(fastest, possible.back().time_s);
  }
  constexpr double kTie = 0.01;
  double fastest_shown = 1e300;
  for (const json& chosen : plan["frontier"]) {
    const double shown_s = chosen["closed_form"]["wall_clock_s"];
    fastest_shown = std::min(fastest_shown, shown_s);
    for (const Possible& one : possible) {
      const bool no_riskier =
          one.steps <= chosen["local_steps"].get<int>() && one.overlap >= chosen["expert_overlap"].get<int>();
      if (no_riskier) CHECK(one.time_s >= shown_s / (1 + kTie) * (1 - 1e-9));
    }
  }
  CHECK(fastest_shown <= fastest * (1 + kTie));
  // The first row takes the least risk of those within 5 % of the fastest one with at least 20 rounds.
  double enough = 1e300;
  for (const Possible& one : possible)
    if (!one.few) enough = std::min(enough, one.time_s);
  const json& first = plan["frontier"][0];
  CHECK(first == plan["recommended"]);
  CHECK(first["closed_form"]["wall_clock_s"].get<double>() <= enough * 1.05 * (1 + 1e-9));
  std::erase_if(possible, [&](const Possible& one) { return one.time_s > enough * 1.05 / (1 + kTie); });
  const auto least = std::min_element(possible.begin(), possible.end(),
                                      [](const auto& a, const auto& b) { return a.risk() < b.risk(); });
  const int steps = first["local_steps"], overlap = first["expert_overlap"];
  CHECK(std::tuple(first["rounds"] < 20, overlap < 4, steps, -overlap) <= least->risk());
  // The others: less risk than the first, and then less time than every row above.
  const auto riskier = plan["frontier"].size() - plan["riskier_rows"].get<std::size_t>();
  for (std::size_t i = 1; i < plan["frontier"].size(); ++i) {
    const json& row = plan["frontier"][i];
    const double time_s = row["simulated"]["wall_clock_s"];
    if (i >= riskier) {
      for (std::size_t above = riskier - 1; above < i; ++above)
        CHECK(time_s < plan["frontier"][above == riskier - 1 ? 0 : above]["simulated"]["wall_clock_s"]);
    } else {
      CHECK(time_s > first["simulated"]["wall_clock_s"]);
    }
  }
}

TEST_CASE("the pasted command line gives the time that the plan gave") {
  const json plan = planned(kFourSites + " --vary strategy.method=fomoe,streaming_diloco --top 3");
  for (const json& row : plan["frontier"]) {
    const Ran ran = run_in(source_dir(), row["command"].get<std::string>() + " --output -");
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    CHECK(json::parse(ran.out)["wall_clock_s"] == row["simulated"]["wall_clock_s"]);
  }
}

TEST_CASE("a table that was measured with one number of rounds between redraws says nothing about others") {
  const Folder folder;
  std::string table = read_all(write_quality(folder));
  table.replace(table.find("strategy,local_steps"), 0, "# reshuffle_rounds: 1\n");
  write_all(folder / "q.csv", table + "diloco,16,random,2,1,28,,\n");
  const std::string options = kTwoSites + " --set quality.file=" + (folder / "q.csv") +
                              " --set strategy.expert_overlap=1 --set strategy.local_steps=16 --set "
                              "strategy.placement=random ";
  const Ran ran =
      run_in(source_dir(), "fomoe sweep " + options +
                               "--engine closed-form --vary strategy.reshuffle_rounds=4,1,2 --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json rows = json::parse(ran.out)["rows"];
  CHECK(rows[0]["perplexity"].is_null());
  CHECK(rows[1]["perplexity"] == 28);
  CHECK(rows[2]["perplexity"].is_null());
  // Full replicas have no placements to redraw.
  const Ran full =
      run_in(source_dir(), "fomoe simulate " + options +
                               "--set strategy.expert_overlap=2 --set strategy.reshuffle_rounds=4 "
                               "--engine closed-form --output -");
  REQUIRE_MESSAGE(full.exit_status == 0, full.err);
  CHECK(json::parse(full.out)["quality"]["perplexity"] == 30);
  const json plan =
      planned(options +
              "--vary strategy.method=fomoe --vary strategy.placement=random --vary "
              "strategy.expert_overlap=1 --vary strategy.local_steps=16 --within perplexity=29");
  CHECK(plan["choice"]["perplexity"] == 28);
  CHECK(plan["choice"]["reshuffle_rounds"] == 1);
}

TEST_CASE(
    "with measured perplexities: the fastest case within the limit, never a faster one above the limit") {
  const Folder folder;
  const std::string scenario =
      kTwoSites + " --set quality.file=" + write_quality(folder) +
      " --vary strategy.method=ddp,diloco,fomoe --vary strategy.local_steps=1,16,64 --vary "
      "strategy.collective=ring --vary strategy.payload_dtype=bf16 --vary "
      "strategy.placement=fixed --vary strategy.expert_overlap=1,2";
  SUBCASE("a limit by hand: 29 and 30 are allowed; K = 16 is faster than K = 1, and O_e = 2 is diloco") {
    const json plan = planned(scenario + " --within perplexity=31");
    CHECK(plan["basis"] == "target-perplexity");
    CHECK(plan["choice"]["local_steps"] == 16);
    CHECK(plan["choice"]["expert_overlap"] == 2);
    CHECK(plan["choice"]["perplexity"] == 30);
    for (const json& row : plan["ranking"]) CHECK(row["perplexity"].get<double>() <= 31);
  }
  SUBCASE("the outer optimiser is chosen too, whatever the scenario has: rows of diloco are Nesterov's") {
    const json plan =
        planned(scenario + " --set strategy.outer_optimizer=local_adamw --within perplexity=31");
    CHECK(plan["choice"]["local_steps"] == 16);
    CHECK(plan["choice"]["perplexity"] == 30);
  }
  SUBCASE("a higher limit that admits K = 64") {
    const json plan = planned(scenario + " --within perplexity=33");
    CHECK(plan["choice"]["local_steps"] == 64);
    CHECK(plan["choice"]["perplexity"] == 33);
  }
  SUBCASE("without a limit the scenario's own perplexity, 34, is the limit") {
    const json plan = planned(scenario);
    CHECK(plan["target_perplexity"] == 34);
    CHECK(plan["choice"]["local_steps"] == 64);
  }
  SUBCASE("if the scenario's own perplexity is unknown, the answer is a frontier of time and perplexity") {
    const json plan = planned(scenario + " --set strategy.local_steps=17");
    CHECK(plan["basis"] == "perplexity-frontier");
    const json& rows = plan["frontier"];
    REQUIRE(rows.size() == 3);  // the row with 34 is slower than the one with 33
    // The best of those within 5 % of the fastest, then the better and slower ones.
    CHECK(rows[0]["perplexity"] == 33);
    CHECK(rows[1]["perplexity"] == 29);
    CHECK(rows[2]["perplexity"] == 30);
    CHECK(rows[0]["simulated"]["wall_clock_s"] < rows[2]["simulated"]["wall_clock_s"]);
    CHECK(rows[2]["simulated"]["wall_clock_s"] < rows[1]["simulated"]["wall_clock_s"]);
  }
}

TEST_CASE("with a scaling law: the least time to equal loss; coarser formats have no known quality") {
  const Folder folder;
  write_all(folder / "s.toml", R"(
[model]
d_model = 1024
layers = 12
heads = 8
experts = 1
active_experts = 1
d_expert = 4096
vocabulary = 32768
sequence_length = 2048
[workload]
tokens = 3.7e9
global_batch_sequences = 80  # the law's best batch is 47 to 107
[strategy]
method = "diloco"
local_steps = 30
[compute]
peak_flops = "300TFLOPS"
mfu = 0.4
gpus_per_site = 2
[platform]
sites = 8
bandwidth = "1Gbps"
latency = "20ms"
[quality]
model = "diloco-scaling-law"
)");
  const json plan = planned(folder / "s.toml");
  CHECK(plan["basis"] == "equal-loss");
  const json& choice = plan["choice"];
  CHECK(choice["payload_dtype"] == "bf16");  // int8 would be faster, but its loss is unknown
  CHECK(choice["value"].get<double>() ==
        doctest::Approx(choice["simulated"]["wall_clock_s"].get<double>() * centre_of(choice)));
  // The ends of the numbers of sites that the law covers, separately.
  for (const char* method : {"diloco", "ddp"}) {
    for (const char* sites : {"2", "8"}) {
      for (const char* collective : {"ring", "direct"}) {
        const Ran ran =
            run_in(source_dir(), "fomoe simulate " + (folder / "s.toml") +
                                     " --set strategy.method=" + method + " --set platform.sites=" + sites +
                                     " --set strategy.collective=" + collective + " --output -");
        const json report = json::parse(ran.out);
        const json& quality = report["quality"];
        double to_equal_loss_s = report["wall_clock_s"];  // of data-parallel training
        if (quality.contains("to_equal_loss")) {
          const json& ends = quality["to_equal_loss"]["wall_clock_s"];
          to_equal_loss_s = std::sqrt(ends["centre_low"].get<double>() * ends["centre_high"].get<double>());
        }
        CHECK(choice["value"].get<double>() <= to_equal_loss_s * (1 + 1e-9));
      }
    }
  }
}

TEST_CASE("a limit that only the pessimistic closed form exceeds is decided by the simulator") {
  // The sites differ, and the closed form takes the slowest links for all transfers of recursive halving.
  const std::string scenario =
      source_dir() +
      "/experiments/scenarios/eight-regions.toml --set network_model.host=ideal --set "
      "compute.step_time=420ms --vary "
      "strategy.method=fomoe --vary strategy.local_steps=4 --vary strategy.expert_overlap=2 --vary "
      "strategy.placement=fixed --vary strategy.collective=recursive --vary strategy.payload_dtype=bf16";
  const json free = planned(scenario);
  const json& row = free["frontier"][0];
  const double simulated_s = row["simulated"]["wall_clock_s"], formula_s = row["closed_form"]["wall_clock_s"];
  REQUIRE(formula_s > simulated_s * 1.1);
  const auto within = [&](double seconds) {
    return planned(scenario + " --within time=" + std::to_string(seconds) + "s");
  };
  CHECK(within(simulated_s * 1.05)["frontier"].size() == 1);
  CHECK(within(simulated_s * 0.95)["frontier"].empty());
}

TEST_CASE("limits drop candidates, and the counts per reason add up") {
  const json none = planned(kTwoSites + " --within memory=1MB");
  std::uint64_t dropped = 0;
  bool memory = false;
  for (const json& row : none["dropped"]) {
    dropped += row["count"].get<std::uint64_t>();
    memory = memory || row["reason"] == "does not fit into a GPU's memory";
  }
  CHECK(memory);
  CHECK(none["frontier"].empty());
  CHECK(none["simulated"] == 0);
  CHECK(dropped == none["candidates"]);
  const json limited = planned(kTwoSites + " --within time=90s --vary strategy.method=fomoe,diloco,ddp");
  REQUIRE(!limited["frontier"].empty());
  for (const json& row : limited["frontier"]) CHECK(row["simulated"]["wall_clock_s"] <= 90);
  const Ran words = run_in(source_dir(), "fomoe plan " + kTwoSites + " --within time=1s");
  CHECK(words.exit_status == 3);
  CHECK(words.err == "fomoe: no configuration meets the limits of --within\n");
  CHECK_MESSAGE(
      words.out.starts_with("No configuration meets all limits. Without limits on time, cost and energy, and "
                            "regardless of quality, the best configurations are:\nleast time: "),
      words.out);
  // The text names the case with the least time: the first row of a plan without limits.
  const json least = planned(kTwoSites + " --within time=1s")["without_limits"][0];
  CHECK(least["least"] == "time");
  const double least_s = least["simulated"]["wall_clock_s"],
               first_s =
                   planned(kTwoSites + " --top 1 --slack 0%")["recommended"]["simulated"]["wall_clock_s"];
  CHECK(least_s <= first_s);
  CHECK(first_s <= least_s * 1.01);  // ties go to less risk
}

TEST_CASE("sites are chosen if step times depend on their number, and stay as given otherwise") {
  const std::string eight =
      source_dir() + "/experiments/scenarios/eight-regions.toml --set network_model.host=ideal";
  const std::string few =
      " --vary strategy.method=diloco --vary strategy.local_steps=64 --vary "
      "strategy.payload_dtype=bf16";
  const std::string assumed = " --set compute.peak_flops=100TFLOPS --set compute.mfu=0.3";
  const json plan = planned(eight + assumed + few);
  // Seven numbers of sites, three collectives.
  CHECK(plan["candidates"] == 7 * 3);
  CHECK(plan["frontier"][0]["sites"].size() > 2);
  const json given = planned(eight + " --set compute.step_time=420ms" + few);
  CHECK(given["candidates"] == 3);
  CHECK(given["tried"].dump().find("all 8 sites: step_time is given") != std::string::npos);
  // What rows of the answer may have beside the axes is said, too.
  const json own = planned(eight + assumed +
                           " --unset strategy.payload_dtype --vary "
                           "strategy.method=centralised,diloco,diloco_x --vary strategy.local_steps=64");
  CHECK(own["methods_tried"] == json({"centralised", "diloco", "diloco_x"}));
  CHECK(own["tried"].dump().find("number formats of their own: diloco_x int4\"") != std::string::npos);
  CHECK(own["tried"].dump().find("one site alone, each of them: centralised\"") != std::string::npos);
  CHECK(given["tried"].dump().find("of their own") == std::string::npos);
  // Four sites have 6 + 4 + 1 sets of two or more.
  CHECK(planned(eight + assumed + few + " --set platform.sites=4")["candidates"] == 11 * 3);
}

TEST_CASE("mistakes of `fomoe plan`") {
  const std::string plan = "fomoe plan " + kTwoSites;
  refused(plan + " --minimise tim",
          "fomoe: --minimise: got \"tim\"; expected one of time, cost, energy; for example --minimise time; "
          "did you "
          "mean time?");
  refused(plan + " --minimise cost",
          "fomoe: --minimise: got cost, and the scenario has no prices; expected [prices]; for example --set "
          "prices.gpu_hour=2.50USD");
  refused(plan + " --within time=3",
          "fomoe: --within: got \"time=3\"; expected a time with a unit; for example --within "
          "time=3d,cost=5000USD,energy=800kWh,perplexity=30,memory=80GiB");
  refused(
      plan + " --within tim=3d",
      "fomoe: --within: got \"tim=3d\"; expected one of time, cost, energy, perplexity, memory (did you mean "
      "time?); for example --within time=3d,cost=5000USD,energy=800kWh,perplexity=30,memory=80GiB");
  refused(plan + " --set prices.gpu_hour=2USD --within cost=5EUR",
          "fomoe: --within: got \"cost=5EUR\"; expected an amount above zero in USD; for example --within "
          "time=3d,cost=5000USD,energy=800kWh,perplexity=30,memory=80GiB");
  refused(
      plan + " --set prices.gpu_hour=2USD --within cost=4,000USD",
      "fomoe: --within: got \"cost=4,000USD\"; expected numbers without commas, because a comma begins the "
      "next limit; for example --within time=3d,cost=5000USD,energy=800kWh,perplexity=30,memory=80GiB");
  refused(plan + " --within perplexity=30",
          "fomoe: --within: got perplexity, and the scenario has no quality model; expected [quality]; for "
          "example "
          "--set quality.model=paper-table");
  refused(plan + " --top 0",
          "fomoe: --top: got \"0\"; expected a whole number from 1 to 30; for example --top 5");
}

TEST_CASE("platform.use_sites selects named sites of a file") {
  const std::string eight = "fomoe simulate " + source_dir() +
                            "/experiments/scenarios/eight-regions.toml --set network_model.host=ideal --set "
                            "compute.step_time=420ms";
  const auto json_of = [](const std::string& command) {
    const Ran ran = run_in(source_dir(), command + " --output -");
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    return json::parse(ran.out);
  };
  const std::string first = " --set platform.use_sites='azure:westeurope, azure:eastus'";
  // The file's first two sites, by name and by number.
  CHECK(json_of(eight + first)["wall_clock_s"] == json_of(eight + " --set platform.sites=2")["wall_clock_s"]);
  CHECK(json_of(eight +
                " --set platform.use_sites='[\"azure:westeurope\", \"azure:eastus\"]'")["wall_clock_s"] ==
        json_of(eight + " --set platform.sites=2")["wall_clock_s"]);
  const json other = json_of(eight + " --set platform.use_sites=aws:us-east-1,gcp:asia-south1-a");
  CHECK(other["sites"][0]["name"] == "aws:us-east-1");
  CHECK(other["sites"][1]["name"] == "gcp:asia-south1-a");
  const auto message = [&](const std::string& options) { return run_in(source_dir(), eight + options).err; };
  CHECK(message(" --set platform.use_sites=aws:us-east-2,azure:eastus")
            .find("--set platform.use_sites=aws:us-east-2,azure:eastus: platform.use_sites: got "
                  "\"aws:us-east-2\"; "
                  "expected names of the file's sites, or patterns that match them: azure:westeurope, ") ==
        0);
  CHECK(message(" --set platform.use_sites=aws:us-east-2,azure:eastus").find("did you mean aws:us-east-1?") !=
        std::string::npos);
  CHECK(message(" --set platform.use_sites=azure:eastus,azure:eastus").find("got \"azure:eastus\" twice") !=
        std::string::npos);
}
