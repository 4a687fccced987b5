// Tests of `fomoe validate` with runs that lost sites and were started again. A run is "measured" here by
// adding up simulations of scenarios that never lost a site: 3 sites, then 2, then 3 again.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/experiments/measured_by_simulation.hpp"

namespace scenario = fomoe::scenario;
namespace costmodel = fomoe::costmodel;
using namespace fomoe::tests;
using nlohmann::json;

namespace {

const std::string kTiny = source_dir() + "/experiments/scenarios/tiny-training.toml";
constexpr int kStepTokens = 64 * 4 * 8;  // of a round of one site: 8 steps of 4 sequences of 64 tokens

/// DiLoCo at equal sites, each with 4 sequences a step.
std::vector<std::string> sites_and_rounds(int sites, int rounds) {
  return {"platform.sites=" + std::to_string(sites),
          "workload.global_batch_sequences=" + std::to_string(4 * sites),
          "strategy.method=diloco",
          "strategy.local_steps=8",
          "platform.bandwidth=20Mbps",
          "network_model.host=ideal",  // windows would be simulated several times with small delays
          "workload.tokens=" + std::to_string(kStepTokens * sites * rounds)};
}

costmodel::RunReport simulated(int sites, int rounds) {
  scenario::ReadOptions options;
  options.overrides = sites_and_rounds(sites, rounds);
  fomoe::sim::RunOptions all;
  all.all_rounds = all.seen_flows = true;
  return fomoe::sim::simulate_scenario(scenario::read_scenario(kTiny, options), all).report;
}

/// 20 rounds of 3 sites, of which site-2 missed the rounds 5 to 11. Checkpoints took 0.5 s in each part.
struct LostAndBack {
  scenario::RunRecord record = scenario::new_run_record();
  costmodel::Scenario of;
  costmodel::RunReport last = simulated(3, 8);

  LostAndBack() {
    scenario::ReadOptions options;
    options.overrides = sites_and_rounds(3, 20);
    record.source = scenario::scenario_source(kTiny, options);
    of = scenario::read_scenario(kTiny, options);
    record.whole = false;
    const double first_s = simulated(3, 5).wall_clock_s, middle_s = simulated(2, 7).wall_clock_s;
    const double again_s = first_s + 0.5 + 9, back_s = again_s + middle_s + 0.5 + 4;
    record.all = scenario::WholeRun{2,
                                    back_s + last.wall_clock_s + 0.5,
                                    9 + 4,
                                    {{0, 0, first_s + 0.5, 0.5, {}},
                                     {5, again_s, again_s + middle_s + 0.5, 0.5, {"site-2"}},
                                     {12, back_s, back_s + last.wall_clock_s + 0.4, 0.4, {}}}};
    last.executor = "measured";
    last.round.upkeep_delay_s = 0.5 / 8;
    last.wall_clock_s += 0.5;
    last.compute_utilization = last.round.compute_s * 8 / last.wall_clock_s;
  }
  [[nodiscard]] std::string text() const { return scenario::run_report_json(last, of, record); }
};

}  // namespace

TEST_CASE("a run that lost a site is predicted with the sites of each round; what was lost is no error") {
  const Folder folder;
  const LostAndBack lost;
  write_all(folder / "run.json", lost.text());
  const Ran ran = run_in(folder.path(), "fomoe validate run.json --output -");
  INFO(ran.err);
  REQUIRE(ran.exit_status == 0);
  const json run = json::parse(ran.out)["runs"][0];
  for (const char* what : {"wall_clock", "compute", "communication", "bytes", "utilization"}) {
    CAPTURE(std::string(what));
    CHECK(std::abs(run["errors"][what].get<double>()) < 1e-6);
  }
  CHECK(run["whole_run"]["restarts"] == 2);
  CHECK(run["whole_run"]["lost_s"] == 13);
  const double rounds_s =
      simulated(3, 5).wall_clock_s + simulated(2, 7).wall_clock_s + simulated(3, 8).wall_clock_s;
  CHECK(run["measured"]["wall_clock_s"].get<double>() == doctest::Approx(rounds_s + 13));
  CHECK(run["predicted"]["wall_clock_s"].get<double>() == doctest::Approx(rounds_s + 13).epsilon(1e-6));

  // With a third site in all rounds the prediction is another one: the absence matters.
  LostAndBack ignored;
  ignored.record.all->parts[1].absent.clear();
  write_all(folder / "ignored.json", ignored.text());
  const Ran other = run_in(folder.path(), "fomoe validate ignored.json --output -");
  REQUIRE(other.exit_status == 0);
  CHECK(std::abs(json::parse(other.out)["runs"][0]["errors"]["wall_clock"].get<double>()) > 1e-3);

  const Ran text = run_in(folder.path(), "fomoe validate run.json");
  CHECK(text.out.find("1 of 1 runs lost sites and were started again") != std::string::npos);
  CHECK(text.out.find("13 s") != std::string::npos);
  CHECK(text.out.find("Bytes sent: exactly as predicted in all 1 runs.") != std::string::npos);
}

TEST_CASE("a run whose history is not known, or is not that of its scenario, is refused with the reason") {
  const Folder folder;
  const auto said = [&](const LostAndBack& lost) {
    write_all(folder / "run.json", lost.text());
    const Ran ran = run_in(folder.path(), "fomoe validate run.json");
    CHECK(ran.exit_status == 2);
    return ran.err;
  };
  LostAndBack lost;
  lost.record.all->parts.clear();
  CHECK(said(lost).find("run.whole_run.parts: got nothing; expected the parts of the whole run") !=
        std::string::npos);
  lost = LostAndBack();
  lost.record.all->parts[1].absent = {"site-7"};
  CHECK(
      said(lost).find("run.whole_run.parts.absent: got \"site-7\"; expected a site of the run's scenario") !=
      std::string::npos);
  lost = LostAndBack();
  lost.record.all->parts[2].first_round = 20;
  CHECK(
      said(lost).find("run.whole_run.parts.first_round: got 20; expected rounds of the run, which has 20") !=
      std::string::npos);
  lost = LostAndBack();
  lost.record.all->parts[2].began_s = 1;
  CHECK(said(lost).find("expected seconds that do not go back") != std::string::npos);
  // Terms are fitted to whole runs alone.
  lost = LostAndBack();
  write_all(folder / "run.json", lost.text());
  const Ran ran = run_in(folder.path(), "fomoe calibrate run.json --output terms.toml");
  CHECK(ran.exit_status == 2);
  CHECK(ran.err.find("run.whole: got false") != std::string::npos);
}
