// Tests the utilisation of links over time, by hand.
#include "costmodel/timeline/link_usage.hpp"

#include <doctest/doctest.h>

using namespace fomoe;

TEST_CASE("link usage: a flow's bytes are in the bins of its time, in proportion") {
  costmodel::Plan plan;
  for (const int site : {0, 1}) plan.nodes.push_back({costmodel::NodeKind::worker, site, 1});
  platforms::Platform platform = platforms::uniform(2, 100, 200, 0);
  costmodel::Timeline timeline;
  timeline.round_end_s = {20};
  // Bins of 4 s. The first flow, 30 bytes at 5 B/s, is in the second to the fourth bin; the second flow is in
  // the last one.
  timeline.flow_records = {{0, 1, 30, 7, 13}, {0, 1, 8, 17, 18}};
  const auto usage = costmodel::link_usage(plan, platform, timeline, 5);
  REQUIRE(usage.size() == 3);  // uplink, downlink and path
  for (const costmodel::LinkUsage& link : usage) {
    CAPTURE(link.link);
    const std::vector<double> expected = {0, 5.0 / 4, 20.0 / 4, 5.0 / 4, 8.0 / 4};
    REQUIRE(link.bytes_per_s.size() == expected.size());
    for (std::size_t bin = 0; bin < expected.size(); ++bin)
      CHECK(link.bytes_per_s[bin] == doctest::Approx(expected[bin]));
  }
}
