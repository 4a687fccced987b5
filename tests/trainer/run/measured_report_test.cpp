// Tests of the report that rank 0 makes from the observations of all processes, by hand for two sites.
#include "trainer/run/measured_report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "costmodel/report/validation.hpp"
#include "tests/trainer/run/training_case.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;
using costmodel::Activity;
using doctest::Approx;
using nlohmann::json;

namespace {

/// Two sites of DiLoCo, three rounds of 4 steps. In each round site 0 computes for 3 s and site 1 for 5 s,
/// and then the transfer takes 2 s.
struct TwoSites {
  costmodel::Scenario scenario = training_scenario("diloco", 2);
  costmodel::Plan plan = costmodel::make_plan(scenario);
  std::vector<Observation> observations{2};
  ReportContext context;

  TwoSites() {
    for (int site = 0; site < 2; ++site) {
      Observation& seen = observations[static_cast<std::size_t>(site)];
      seen.peak_memory_bytes = 1000 * (site + 1);
      Observation::OfNode one;
      one.node = site;
      one.traffic.sent_to = {0, 0};
      one.traffic.sent_to[static_cast<std::size_t>(1 - site)] = 600;
      one.traffic.sent[0] = one.traffic.received[0] = 600;
      one.validation_loss = -1;
      one.routed = {{site + 1, 3}, {0, site + 5}};
      one.routers = {{0.5, 0.25, 0.125 * site}};
      one.norms.gradient = 2.5;
      seen.nodes = {one};
      for (int round = 0; round < 3; ++round) {
        const double begin_s = 7.0 * round, computed_s = begin_s + (site == 0 ? 3 : 5);
        seen.intervals.push_back({site, 0, round, Activity::compute, begin_s, computed_s});
        seen.intervals.push_back({site, 1, round, Activity::transfer, computed_s, begin_s + 7});
      }
    }
    context.steps = plan.steps;
    context.device = "a device";
    context.validation_sequences = 16;
  }

  [[nodiscard]] costmodel::RunReport report() const {
    IntervalSummary summary(plan, context.first_round);
    for (const Observation& seen : observations) summary.add(seen.intervals);
    return measured_report(scenario, plan, observations, summary, context);
  }
};

bool has(const std::vector<std::string>& notes, const std::string& part) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("observations are read back as they were") {
  const TwoSites two;
  const Observation& sent = two.observations[1];
  const Observation read = observation_from(to_text(sent));
  CHECK(to_text(read) == to_text(sent));
  CHECK(read.peak_memory_bytes == 2000);
  CHECK(read.whole_validation_loss == -1);
  REQUIRE(read.nodes.size() == 1);
  CHECK(read.nodes[0].node == 1);
  CHECK(read.nodes[0].traffic.sent_to == std::vector<std::int64_t>{600, 0});
  CHECK(read.nodes[0].traffic.total_sent() == 600);
  CHECK(read.nodes[0].traffic.total_received() == 600);
  CHECK(read.nodes[0].routed == sent.nodes[0].routed);
  REQUIRE(read.nodes[0].routers.size() == 1);
  CHECK(read.nodes[0].routers[0].ghost_share == 0.125);
  CHECK(read.nodes[0].norms.gradient == 2.5);
  CHECK_FALSE(read.nodes[0].norms.update.has_value());
  REQUIRE(read.intervals.size() == 6);
  CHECK(read.intervals[5].end_s == 21);
}

TEST_CASE("routing counts: a row for each layer, expert and site") {
  const TwoSites two;
  CHECK(routing_csv(two.scenario, two.plan, two.observations) ==
        "layer,expert,site,count\n0,0,site-0,1\n0,1,site-0,3\n1,0,site-0,0\n1,1,site-0,5\n"
        "0,0,site-1,2\n0,1,site-1,3\n1,0,site-1,0\n1,1,site-1,6\n");
}

TEST_CASE("the measured report by hand: times, bytes, memory and where they come from") {
  const TwoSites two;
  const costmodel::RunReport report = two.report();
  CHECK(report.executor == "measured");
  CHECK(report.wall_clock_s == Approx(21));
  CHECK(report.round.count == 3);
  CHECK(report.round.duration_s == Approx(7));
  CHECK(report.round.compute_s == Approx(4));
  CHECK(report.sites[0].exposed_communication_s == Approx(2));
  CHECK(report.sites[0].idle_s == Approx(2));  // it waits for site 1
  CHECK(report.sites[1].idle_s == Approx(0));
  CHECK(report.sites[0].bytes_sent == 600);
  CHECK(report.sites[0].memory_bytes == 1000);
  CHECK(report.sites[1].memory_bytes == 2000);
  CHECK(report.tokens == two.scenario.workload.tokens);
  CHECK_FALSE(report.quality.has_value());
  REQUIRE(report.provenance.size() == 3);
  for (const fomoe::Provenance& entry : report.provenance) CHECK(entry.origin == fomoe::Origin::measured);
  CHECK(report.provenance[0].detail == "this run on a device");
  CHECK(report.notes == std::vector<std::string>{note_on_links(two.context)});
}

TEST_CASE("the report names the data that were trained on, and those that were validated on") {
  TwoSites two;
  for (Observation& seen : two.observations) seen.nodes[0].validation_loss = 2;
  two.context.data = "synthetic: a Markov chain";
  two.context.validation_data = "corpus/held-out.bin, 5,000 tokens";
  const costmodel::RunReport report = two.report();
  CHECK(report.provenance.back().what == "training data");
  CHECK(report.provenance.back().detail == "synthetic: a Markov chain");
  CHECK(report.quality.value().source ==
        "measured: 16 validation sequences, mean loss of the models of 2 sites");
  const json validation = json::parse(validation_json(two.scenario, two.plan, two.observations, two.context));
  CHECK(validation["data"] == "corpus/held-out.bin, 5,000 tokens");
}

TEST_CASE("validation and checkpoints between rounds are no idle time") {
  TwoSites two;
  two.observations[0].upkeep_s = 3;   // site 0 waits for 2 s in each of 3 rounds
  two.observations[1].upkeep_s = 30;  // more than the time in which site 1 does nothing
  const costmodel::RunReport report = two.report();
  CHECK(report.sites[0].upkeep_s == Approx(1));
  CHECK(report.sites[0].idle_s == Approx(1));
  CHECK(report.sites[1].upkeep_s == Approx(0));
  CHECK(report.round.upkeep_s == Approx(0.5));
  CHECK(report.round.compute_s + report.round.exposed_communication_s + report.round.idle_s +
            report.round.upkeep_s ==
        Approx(report.round.duration_s));
  CHECK(report.wall_clock_s == Approx(21));
}

TEST_CASE("a prediction without upkeep is compared with the run that would have been without it") {
  TwoSites two;
  // Before the second and the third round both sites validate for 4 s, which makes all later times longer.
  for (Observation& seen : two.observations) {
    const std::int32_t site = seen.nodes.front().node;
    for (costmodel::Interval& interval : seen.intervals) {
      interval.start_s += 4.0 * static_cast<double>(interval.round);
      interval.end_s += 4.0 * static_cast<double>(interval.round);
    }
    for (const std::int64_t round : {1, 2}) {
      const double begin_s = 7.0 + 11.0 * static_cast<double>(round - 1);
      seen.intervals.push_back({site, costmodel::kNoOp, round, Activity::upkeep, begin_s, begin_s + 4});
    }
    seen.upkeep_s = 8;
  }
  const costmodel::RunReport report = two.report(), predicted = TwoSites().report();
  CHECK(report.wall_clock_s == Approx(29));
  CHECK(report.round.upkeep_s == Approx(8.0 / 3));
  CHECK(*report.round.upkeep_delay_s == Approx(8.0 / 3));
  CHECK(report.sites[0].idle_s == Approx(predicted.sites[0].idle_s));
  REQUIRE(!report.critical_path.empty());
  CHECK(report.critical_path.front().activity == Activity::upkeep);
  CHECK(report.critical_path.front().seconds == Approx(4));
  const costmodel::RunErrors errors = costmodel::errors_of(predicted, report);
  using costmodel::Compared;
  for (const Compared what : {Compared::wall_clock, Compared::compute, Compared::first_round,
                              Compared::later_rounds, Compared::utilization}) {
    CAPTURE(costmodel::kComparedNames[static_cast<std::size_t>(what)]);
    CHECK(*errors[static_cast<std::size_t>(what)] == Approx(0).epsilon(1e-12));
  }
  // A report of an earlier version has the mean of the sites only.
  costmodel::RunReport earlier = report;
  earlier.round.upkeep_delay_s.reset();
  const costmodel::RunErrors of_earlier = costmodel::errors_of(predicted, earlier);
  CHECK(*of_earlier[static_cast<std::size_t>(Compared::wall_clock)] == Approx(0).epsilon(1e-12));
}

TEST_CASE("a resumed run, a run in turn, a paced run and one without a site say so") {
  TwoSites two;
  two.context.in_turn = two.context.paced = true;
  two.context.pace = {{"step time", fomoe::Origin::assumed, "1 s"}};
  two.context.absent = "site-2";
  two.context.trained_share = 0.75;
  const costmodel::RunReport report = two.report();
  CHECK(has(report.notes, "one process trained all sites one after the other"));
  CHECK(has(report.notes, "every operation slept for the time that the scenario gives"));
  CHECK(has(report.notes, "the run went on without site-2"));
  CHECK_FALSE(has(report.notes, "the run resumed"));
  CHECK(report.tokens == two.scenario.workload.tokens * 3 / 4);
  CHECK(report.tokens_per_s == Approx(TwoSites().report().tokens_per_s * 0.75));
  CHECK(report.bytes_per_token == Approx(TwoSites().report().bytes_per_token / 0.75));
  REQUIRE(report.provenance.size() == 4);
  CHECK(report.provenance[3].what == "paced step time");

  TwoSites later;
  later.context.first_round = 1;
  later.context.steps = 8;
  for (Observation& seen : later.observations)
    seen.intervals.erase(seen.intervals.begin(), seen.intervals.begin() + 2);
  const costmodel::RunReport resumed = later.report();
  CHECK(has(resumed.notes, "the run resumed after round 1; "));
  CHECK(resumed.round.count == 2);
  CHECK(resumed.tokens == later.scenario.workload.tokens * 2 / 3);
}

TEST_CASE("the loss of the mean model stands in the report where the models of sites differ") {
  TwoSites two;
  two.plan.placement = nullptr;
  for (Observation& seen : two.observations) seen.nodes[0].validation_loss = 3;
  two.observations[0].whole_validation_loss = 2;
  const costmodel::Quality quality = two.report().quality.value();
  CHECK(quality.perplexity == Approx(std::exp(2)));
  CHECK(quality.source ==
        "measured: 16 validation sequences, loss of the mean of the models of 2 sites, which can "
        "differ; these models have a mean loss of perplexity 20.09");
}

TEST_CASE("the validation: losses of the sites that validated, their mean, and that of the whole model") {
  TwoSites two;
  CHECK(validation_json(two.scenario, two.plan, two.observations, two.context).empty());
  two.observations[0].nodes[0].validation_loss = 0;  // a loss of 0 is a loss
  two.observations[1].nodes[0].validation_loss = 3;
  json validation = json::parse(validation_json(two.scenario, two.plan, two.observations, two.context));
  CHECK(validation["sequences"] == 16);
  CHECK(validation["loss"] == 1.5);
  CHECK(validation["mean_site_loss"] == 1.5);
  REQUIRE(validation["sites"].size() == 2);
  CHECK(validation["sites"][1]["site"] == "site-1");
  CHECK(validation["sites"][1]["loss"] == 3);
  CHECK(validation["sites"][1]["routers"][0]["ghost_share"] == 0.125);
  CHECK(validation["sites"][1]["norms"]["gradient"] == 2.5);
  CHECK(validation["sites"][1]["norms"]["update"].is_null());
  CHECK(two.report().quality->perplexity == Approx(std::exp(1.5)));

  two.observations[0].nodes[0].validation_loss = -1;  // this site did not validate
  two.observations[1].whole_validation_loss = 2;
  validation = json::parse(validation_json(two.scenario, two.plan, two.observations, two.context));
  CHECK(validation["loss"] == 2);
  CHECK(validation["mean_site_loss"] == 3);
  CHECK(validation["sites"].size() == 1);
  CHECK(two.report().quality->perplexity == Approx(std::exp(2)));
  CHECK(two.report().quality->source.find("16 validation sequences") != std::string::npos);
}
