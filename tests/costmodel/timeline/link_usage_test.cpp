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

TEST_CASE("link usage: flows that share a link never fill it above its rate, and all bytes count") {
  costmodel::Plan plan;
  for (const int site : {0, 1, 2}) plan.nodes.push_back({costmodel::NodeKind::worker, site, 1});
  const platforms::Platform platform = platforms::uniform(3, 10, 1000, 0);
  costmodel::Timeline timeline;
  timeline.round_end_s = {20};
  // On an uplink of 10 B/s, the first flow is alone for 10 s, then both share it: 100 + 50 and 50 bytes.
  // Their mean rates are 7.5 B/s and 5 B/s.
  timeline.flow_records = {{0, 1, 150, 0, 20}, {0, 2, 50, 10, 20}};
  const auto usage = costmodel::link_usage(plan, platform, timeline, 4);
  double of_uplink = 0;
  for (const costmodel::LinkUsage& link : usage) {
    CAPTURE(link.link);
    for (const double rate : link.bytes_per_s) {
      CHECK(rate <= link.capacity_bytes_per_s * (1 + 1e-9));
      if (link.link == "uplink of site-0") of_uplink += 5 * rate;
      if (link.link == "uplink of site-0") CHECK(rate == doctest::Approx(10));
    }
  }
  CHECK(of_uplink == doctest::Approx(200).epsilon(1e-12));
}
