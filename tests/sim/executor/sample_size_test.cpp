// Tests how many rounds a simulation executes, which its notes state: all of them, a few that stand for equal
// ones, or as many as allowed where rounds differ.
#include <doctest/doctest.h>

#include <regex>
#include <string>
#include <utility>

#include "sim/executor/simulated_run.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using costmodel::Scenario;

namespace {

/// Rounds of 5 steps among two sites, all alike.
Scenario many_rounds(const char* method, std::int64_t rounds) {
  Scenario scenario = tests::ideal_scenario(method, 2);
  scenario.workload.tokens = rounds * 5 * 2 * 10;
  return scenario;
}

std::string last_note(const Scenario& scenario, const sim::RunOptions& options) {
  return sim::simulate_scenario(scenario, options).report.notes.back();
}

/// The number of rounds that were executed with this bound of flows, by the note.
double executed(const Scenario& scenario, std::int64_t most_flows) {
  sim::RunOptions options;
  options.most_flows = most_flows;
  const std::string note = last_note(scenario, options);
  std::smatch found;
  CAPTURE(note);
  REQUIRE(std::regex_search(note, found, std::regex("^simulated (\\d+) of (\\d+) rounds")));
  return std::stod(found[1]);
}

}  // namespace

TEST_CASE("equal rounds: three of them, or as many as asked for") {
  const Scenario scenario = many_rounds("local_sgd", 1000);
  CHECK(last_note(scenario, {}) == "simulated 3 of 1000 rounds of 5 steps");
  CHECK(last_note(scenario, {.rounds = 10}) == "simulated 10 of 1000 rounds of 5 steps");
  CHECK(last_note(scenario, {.rounds = {}, .all_rounds = true}) == "simulated all 1000 rounds");
  CHECK(last_note(many_rounds("local_sgd", 2), {}) == "simulated 2 of 2 rounds of 5 steps");
}

TEST_CASE("random rounds: the sample is as large as allowed, even if the first rounds hardly differ") {
  // A sample of few rounds could lack what is rare, here a step in a thousand that takes ten times as long.
  Scenario scenario = many_rounds("local_sgd", 5000);
  scenario.variation.straggler_share = 0.001;
  scenario.variation.straggler_factor = 10;
  const double some = executed(scenario, 2'000), more = executed(scenario, 4'000);
  CHECK(some >= 50);
  CHECK(more == doctest::Approx(2 * some).epsilon(0.05));
  CHECK(last_note(scenario, {.rounds = {}, .most_flows = 2'000})
            .ends_with("; the rounds differ, so these are a sample"));
  CHECK(last_note(scenario, {.rounds = {}, .most_flows = 10'000'000}) == "simulated all 5000 rounds");
}

TEST_CASE("the bound counts what a round has: flows, parts of operations, and half of its exchanges") {
  // The dense part, and with two owners of four sites each of 8 experts in each of two layers.
  for (const int overlap : {1, 2, 4}) {
    CAPTURE(overlap);
    const double exchanges = overlap == 2 ? 1.0 + 2 * 8 : 1.0;
    Scenario scenario = tests::ideal_scenario("fomoe", 4, overlap);
    scenario.workload.tokens = 5000LL * 5 * 4 * 10;
    scenario.variation.coefficient = 0.1;
    const auto few = sim::simulate_scenario(scenario, {.rounds = 8});
    const auto parts = static_cast<double>(few.timeline.flows.size() + few.timeline.intervals.size()) / 8;
    CHECK(executed(scenario, 10'000) == doctest::Approx(10'000 / (parts + exchanges / 2)).epsilon(0.01));
  }
}

TEST_CASE("overlapping rounds of sites that drift apart: as many as allowed") {
  Scenario scenario = many_rounds("diloco_x", 5000);
  scenario.platform.sites[1].compute_factor = 1.01;
  const double some = executed(scenario, 2'000), more = executed(scenario, 4'000);
  CHECK(some >= 50);
  CHECK(more == doctest::Approx(2 * some).epsilon(0.05));
  scenario.platform.sites[1].compute_factor = 1;
  CHECK(executed(scenario, 4'000) == 8);
}

TEST_CASE("rounds that differ by their placement alone: no more than the precision needs") {
  // Gossip among two sites has the same pair in every round, so that the first rounds already agree.
  const Scenario scenario = many_rounds("gossip", 5000);
  CHECK(executed(scenario, 100'000) == executed(scenario, 1'000'000));
  CHECK(executed(scenario, 1'000'000) < 50);
}
