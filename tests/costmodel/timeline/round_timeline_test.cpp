// Tests of round_timeline(), which cuts one round out of an executed sequence of rounds.
#include "costmodel/timeline/round_timeline.hpp"

#include <doctest/doctest.h>

using namespace fomoe::costmodel;

namespace {

/// A plan of `nodes` workers. In every round "steps" is operation 0, "sync" operation 1 and "short"
/// operation 2.
Plan plan_of(int nodes) {
  Plan plan;
  for (int node = 0; node < nodes; ++node) plan.nodes.push_back({NodeKind::worker, node, 1});
  plan.rounds = 3;
  plan.round = [](std::int64_t) {
    return RoundPlan{{{"steps", Compute{}, {}}, {"sync", Transfer{}, {0}}, {"short", Compute{}, {}}}};
  };
  return plan;
}

/// A timeline whose rounds end at 10, 20 and 30 s.
Timeline three_rounds() {
  Timeline timeline;
  timeline.rounds = {0, 1, 2};
  timeline.round_end_s = {10, 20, 30};
  return timeline;
}

}  // namespace

TEST_CASE("the middle round is shown, and spans that cross its start or end are cut there") {
  Timeline timeline = three_rounds();
  timeline.intervals = {{0, 0, 0, Activity::compute, 0, 9},
                        {0, 1, 0, Activity::transfer, 8, 12},
                        {0, 0, 1, Activity::compute, 12, 18},
                        {0, 1, 1, Activity::transfer, 18, 22},
                        {0, 0, 2, Activity::compute, 22, 28}};
  timeline.flows = {{0, 1, 18.5, 19.5}};
  const RoundTimeline shown = round_timeline(plan_of(1), timeline);
  CHECK(shown.round == 1);
  CHECK(shown.duration_s == 10);
  CHECK(shown.left_out_nodes == 0);
  REQUIRE(shown.spans.size() == 4);
  CHECK(shown.spans[0].kind == SpanKind::compute);
  CHECK(shown.spans[0].what == "steps");
  CHECK(shown.spans[0].start_s == 2);
  CHECK(shown.spans[0].end_s == 8);
  CHECK(shown.spans[1].what == "sync");  // of the previous round
  CHECK(shown.spans[1].start_s == 0);
  CHECK(shown.spans[1].end_s == 2);
  CHECK(shown.spans[2].start_s == 8);
  CHECK(shown.spans[2].end_s == 10);  // cut at the round's end, not 12
  CHECK(shown.spans[3].kind == SpanKind::under_way);
  CHECK(shown.spans[3].start_s == 8.5);
}

TEST_CASE(
    "validation and checkpoints between rounds have spans of their own, at the start of the next round") {
  Timeline timeline = three_rounds();
  timeline.intervals = {{0, kNoOp, 1, Activity::upkeep, 10, 13}, {0, 0, 1, Activity::compute, 13, 18}};
  const RoundTimeline shown = round_timeline(plan_of(1), timeline);
  REQUIRE(shown.spans.size() == 2);
  CHECK(shown.spans[1].kind == SpanKind::upkeep);
  CHECK(shown.spans[1].what == kUpkeepName);
  CHECK(shown.spans[1].start_s == 0);
  CHECK(shown.spans[1].end_s == 3);
}

TEST_CASE("spans that are too short to draw are joined, and longer ones keep their names") {
  Timeline timeline = three_rounds();
  for (int i = 0; i < 1000; ++i)
    timeline.intervals.push_back(
        {0, i % 2 == 0 ? 0 : 2, 1, Activity::compute, 10 + i * 0.005, 10 + (i + 1) * 0.005});
  timeline.intervals.push_back({0, 2, 1, Activity::compute, 15, 18});
  const RoundTimeline shown = round_timeline(plan_of(1), timeline);
  REQUIRE(shown.spans.size() == 2);
  CHECK(shown.spans[0].what == "steps and others");
  CHECK(shown.spans[0].end_s == doctest::Approx(5));
  CHECK(shown.spans[1].what == "short");
  CHECK(shown.spans[1].end_s == 8);
}

TEST_CASE("at most sixteen nodes are shown and the others are counted; without rounds there are no spans") {
  Timeline timeline = three_rounds();
  for (int node = 0; node < 20; ++node) timeline.intervals.push_back({node, 0, 1, Activity::compute, 11, 12});
  const RoundTimeline shown = round_timeline(plan_of(20), timeline);
  CHECK(shown.spans.size() == 16);
  CHECK(shown.left_out_nodes == 4);
  CHECK(round_timeline(plan_of(20), Timeline()).spans.empty());
}

TEST_CASE(
    "a fast site may end a round before a slow site ends an earlier one: no round takes a negative time") {
  Timeline timeline = three_rounds();
  timeline.round_end_s = {10, 25, 20};  // the last round ends before the second one
  timeline.intervals = {{0, 0, 0, Activity::compute, 0, 10},
                        {1, 0, 1, Activity::compute, 0, 25},
                        {0, 0, 2, Activity::compute, 10, 20}};
  const RoundTimeline shown = round_timeline(plan_of(2), timeline);
  CHECK(shown.round == 2);  // the second one to end, from 10 s to 20 s
  CHECK(shown.duration_s == 10);
  CHECK(shown.resolution_s > 0);
  REQUIRE(shown.spans.size() == 2);
  CHECK(shown.spans[0].end_s == 10);
  CHECK(end_of(timeline) == 25);
}
