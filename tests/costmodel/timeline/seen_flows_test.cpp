// Tests of seen_flows(), which estimates when bytes were in flight in a run that records operations only.
#include "costmodel/timeline/seen_flows.hpp"

#include <doctest/doctest.h>

using namespace fomoe::costmodel;

namespace {

Interval transfer(std::int32_t node, std::int32_t op, double start_s, double end_s) {
  return {node, op, /*round=*/0, Activity::transfer, start_s, end_s};
}

}  // namespace

TEST_CASE(
    "a node waits alone in a transfer; bytes flow from the arrival of another node until the node is done") {
  const std::vector<FlowSpan> flows = seen_flows(
      {transfer(0, 1, 1, 5), transfer(1, 1, 3, 6), {2, 0, 0, Activity::compute, 0, 4}, transfer(2, 1, 4, 6)});
  REQUIRE(flows.size() == 3);
  CHECK(flows[0].node == 0);
  CHECK(flows[0].start_s == 3);
  CHECK(flows[0].end_s == 5);
  CHECK(flows[1].node == 1);
  CHECK(flows[1].start_s == 3);
  CHECK(flows[1].end_s == 6);
  CHECK(flows[2].start_s == 4);  // both other nodes have arrived
}

TEST_CASE("a node that leaves before another arrives, or that is in another transfer, has no flow") {
  const std::vector<FlowSpan> flows = seen_flows({transfer(0, 1, 1, 2), transfer(1, 1, 3, 6)});
  REQUIRE(flows.size() == 1);
  CHECK(flows[0].node == 1);
  CHECK(seen_flows({transfer(0, 1, 1, 5), transfer(1, 2, 3, 6)}).empty());
}
