// Tests that a run's intervals can be reduced to bounded sums without a change of the report.
#include "trainer/record/interval_summary.hpp"

#include <random>

#include "costmodel/timeline/round_timeline.hpp"
#include "tests/trainer/run/training_case.hpp"
#include "trainer/record/interval_stream.hpp"
#include "trainer/run/measured_report.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;
using costmodel::Activity;
using costmodel::Interval;

namespace {

costmodel::Scenario many_rounds(const std::string& method, std::int64_t rounds) {
  costmodel::Scenario scenario = training_scenario(method, 3);
  scenario.strategy.local_steps = method == "ddp" ? 1 : 2;
  scenario.workload.tokens = rounds * scenario.strategy.local_steps *
                             scenario.workload.global_batch_sequences * scenario.model.sequence_length;
  return scenario;
}

/// Executes plans on a clock of its own: operations take random times, some transfers continue while the node
/// computes, and detached transfers continue into the next round.
class Clock {
 public:
  Clock(const costmodel::Plan& plan, unsigned seed)
      : plan_(plan), ready_s_(plan.nodes.size(), 0), random_(seed) {}

  std::vector<Interval> round(std::int64_t index) {
    std::vector<Interval> out;
    const costmodel::RoundPlan round = plan_.round(index);
    for (std::size_t n = 0; n < ready_s_.size() && index > 0; ++n) {  // some nodes validate before the round
      const double upkeep_s = seconds_(upkeep_) - 0.5;
      if (upkeep_s <= 0) continue;
      out.push_back({static_cast<std::int32_t>(n), costmodel::kNoOp, index, Activity::upkeep, ready_s_[n],
                     ready_s_[n] + upkeep_s});
      ready_s_[n] += upkeep_s;
    }
    std::vector<double> ends(ready_s_);  // of each node's transfers in this round
    for (std::size_t op = 0; op < round.ops.size(); ++op) {
      const auto id = static_cast<std::int32_t>(op);
      if (const auto* work = std::get_if<costmodel::Compute>(&round.ops[op].what)) {
        for (const costmodel::NodeId node : work->nodes) {
          double& ready_s = ready_s_[static_cast<std::size_t>(node)];
          const double start_s = ready_s;
          ready_s += seconds_(random_);
          out.push_back({node, id, index, Activity::compute, start_s, ready_s});
        }
        continue;
      }
      for (const costmodel::Exchange& exchange :
           std::get<costmodel::Transfer>(round.ops[op].what).exchanges) {
        double end_s = 0;
        for (const costmodel::NodeId node : exchange.nodes)
          end_s = std::max(end_s, ready_s_[static_cast<std::size_t>(node)]);
        end_s += seconds_(random_);
        const bool waits = seconds_(random_) < 0.5 && !round.ops[op].detached;
        for (const costmodel::NodeId node : exchange.nodes) {
          const auto n = static_cast<std::size_t>(node);
          out.push_back({node, id, index, Activity::transfer, ready_s_[n], end_s});
          if (waits) ready_s_[n] = end_s;
          if (!round.ops[op].detached) ends[n] = std::max(ends[n], end_s);
        }
      }
    }
    for (std::size_t n = 0; n < ends.size(); ++n) ready_s_[n] = std::max(ready_s_[n], ends[n]);
    return out;
  }

 private:
  const costmodel::Plan& plan_;
  std::vector<double> ready_s_;
  std::mt19937 random_, upkeep_{5};
  std::uniform_real_distribution<double> seconds_{0.1, 1};
};

void check_same(const costmodel::RunReport& one, const costmodel::RunReport& other) {
  // The same sums in another order
  const auto same = [](double a, double b) { CHECK(a == doctest::Approx(b).epsilon(1e-9)); };
  same(one.wall_clock_s, other.wall_clock_s);
  same(one.round.duration_s, other.round.duration_s);
  same(one.round.compute_s, other.round.compute_s);
  same(one.round.exposed_communication_s, other.round.exposed_communication_s);
  same(one.round.communication_s, other.round.communication_s);
  same(one.round.transferring_s, other.round.transferring_s);
  same(one.round.idle_s, other.round.idle_s);
  same(*one.round.upkeep_delay_s, *other.round.upkeep_delay_s);
  CHECK(*one.round.upkeep_delay_s > 0);
  CHECK(one.round.transferring_s > 0);
  CHECK(one.round_durations_s == other.round_durations_s);
  REQUIRE(one.sites.size() == other.sites.size());
  for (std::size_t s = 0; s < one.sites.size(); ++s) {
    same(one.sites[s].compute_s, other.sites[s].compute_s);
    same(one.sites[s].exposed_communication_s, other.sites[s].exposed_communication_s);
    same(one.sites[s].idle_s, other.sites[s].idle_s);
    CHECK(one.sites[s].exposed_communication_s > 0);
  }
  REQUIRE(one.critical_path.size() == other.critical_path.size());
  CHECK(!one.critical_path.empty());
  for (std::size_t i = 0; i < one.critical_path.size(); ++i) {
    CHECK(one.critical_path[i].what == other.critical_path[i].what);
    CHECK(one.critical_path[i].site == other.critical_path[i].site);
    same(one.critical_path[i].seconds, other.critical_path[i].seconds);
  }
}

void check_same(const costmodel::RoundTimeline& one, const costmodel::RoundTimeline& other) {
  CHECK(one.round == other.round);
  CHECK(one.duration_s == other.duration_s);
  REQUIRE(one.spans.size() == other.spans.size());
  CHECK(!one.spans.empty());
  for (std::size_t i = 0; i < one.spans.size(); ++i) {
    CHECK(one.spans[i].node == other.spans[i].node);
    CHECK(one.spans[i].what == other.spans[i].what);
    CHECK(one.spans[i].start_s == other.spans[i].start_s);
    CHECK(one.spans[i].end_s == other.spans[i].end_s);
  }
}

}  // namespace

TEST_CASE("a report from sums is the report from all intervals, for methods with and without overlap") {
  for (const char* method : {"ddp", "diloco", "streaming_diloco", "fedavg"}) {
    for (const std::int64_t first_round : {0, 5}) {
      CAPTURE(method);
      CAPTURE(first_round);
      const costmodel::Scenario scenario = many_rounds(method, 90);
      const costmodel::Plan plan = costmodel::make_plan(scenario);
      IntervalSummary whole(plan, first_round), reduced(plan, first_round);
      Clock clock(plan, 7);
      for (std::int64_t round = first_round; round < plan.rounds; ++round) {
        const std::vector<Interval> seen = clock.round(round);
        whole.add(seen);
        reduced.add(seen);
        if (round % 9 == 0 && round - first_round > kKeptRounds) reduced.fold(round + 1 - kKeptRounds);
      }
      CHECK(reduced.kept() < whole.kept() / 2);
      ReportContext context;
      context.first_round = first_round;
      context.steps = 10;
      check_same(measured_report(scenario, plan, {}, whole, context),
                 measured_report(scenario, plan, {}, reduced, context));
      check_same(costmodel::round_timeline(plan, whole.around_middle()),
                 costmodel::round_timeline(plan, reduced.around_middle()));
    }
  }
}

TEST_CASE("what is kept does not grow with the number of rounds") {
  std::vector<std::size_t> most;
  for (const std::int64_t rounds : {2'000, 20'000}) {
    const costmodel::Scenario scenario = many_rounds("streaming_diloco", rounds);
    const costmodel::Plan plan = costmodel::make_plan(scenario);
    REQUIRE(plan.rounds == rounds);
    IntervalSummary summary(plan, 0);
    Clock clock(plan, 3);
    std::size_t intervals = 0;
    most.push_back(0);
    for (std::int64_t round = 0; round < rounds; ++round) {
      const std::vector<Interval> seen = clock.round(round);
      intervals += seen.size();
      summary.add(seen);
      most.back() = std::max(most.back(), summary.kept());
      if ((round + 1) % rounds_per_block(plan) == 0) summary.fold(round + 1 - kKeptRounds);
    }
    CHECK(intervals > 5 * static_cast<std::size_t>(rounds));
  }
  CHECK(most[1] < most[0] + 50);
}

TEST_CASE("intervals are the same after they were sent") {
  const std::vector<Interval> sent = {{2, 5, 123'456'789, Activity::transfer, 0.1, 1e5 / 3},
                                      {0, 0, 0, Activity::compute, 0, 1e-9}};
  const std::vector<Interval> back = intervals_from(to_text(sent));
  REQUIRE(back.size() == 2);
  CHECK(back[0].node == 2);
  CHECK(back[0].op == 5);
  CHECK(back[0].round == 123'456'789);
  CHECK(back[0].activity == Activity::transfer);
  CHECK(back[0].start_s == 0.1);
  CHECK(back[0].end_s == 1e5 / 3);
  CHECK(back[1].end_s == 1e-9);
}

TEST_CASE("a process that trains all sites keeps few intervals, and their sums are those of all") {
  const costmodel::Scenario scenario = many_rounds("ddp", 300);
  TrainingOptions options = real_options();
  options.paced = true;  // operations sleep; nothing needs to be trained here
  costmodel::Scenario quick = scenario;
  quick.compute = costmodel::GivenStepTime{1e-4};
  Training training(quick, options);
  IntervalStream stream(training.executor, nullptr, training.plan, 0, true);
  REQUIRE(rounds_per_block(training.plan) < 150);
  double compute_s = 0;
  std::size_t most = 0, all = 0, before = 0;
  for (std::int64_t round = 0; round < 300; ++round) {
    training.run(1);
    const std::vector<Interval>& kept = training.executor.intervals();
    for (std::size_t i = before; i < kept.size(); ++i) {
      if (kept[i].activity == Activity::compute && kept[i].node == 1)
        compute_s += kept[i].end_s - kept[i].start_s;
      ++all;
    }
    stream.round(round + 1);
    before = training.executor.intervals().size();
    most = std::max(most, before);
  }
  CHECK(all >= 300 * 3);
  CHECK(most < all / 2);
  const std::vector<Interval> rest = stream.rest();
  CHECK(training.executor.intervals().empty());
  IntervalSummary& summary = stream.received();
  summary.add(rest);
  ReportContext context;
  context.steps = 300;
  context.in_turn = true;
  const costmodel::RunReport report = measured_report(quick, training.plan, {}, summary, context);
  CHECK(report.sites[1].compute_s * 300 == doctest::Approx(compute_s).epsilon(1e-9));
}
