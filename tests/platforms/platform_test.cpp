// Tests the construction of platforms: equal sites and scaled links.
#include "platforms/platform.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "platforms/support/input_error.hpp"

using namespace fomoe::platforms;

TEST_CASE("uniform: equal sites, named, with unlimited paths of one latency") {
  const Platform p = uniform(3, 1e9, 2e9, 0.025);
  REQUIRE(p.size() == 3);
  CHECK(p.paths.alike());
  CHECK(p.sites[0].name == "site-0");
  CHECK(p.sites[2].name == "site-2");
  CHECK(p.sites[1].uplink_bytes_per_s == 1e9);
  CHECK(p.sites[1].downlink_bytes_per_s == 2e9);
  CHECK(p.path(2, 0).latency_s == 0.025);
  CHECK(std::isinf(p.path(2, 0).bandwidth_bytes_per_s));
}

TEST_CASE("scaled_bandwidth: rates shrink, latencies and unlimited paths stay") {
  Platform p = uniform(2, 1000, 2000, 0.5);
  p.set_path_rate(0, 1, 800);
  const Platform scaled = scaled_bandwidth(p, 0.5);
  CHECK(scaled.sites[0].uplink_bytes_per_s == 500);
  CHECK(scaled.sites[0].downlink_bytes_per_s == 1000);
  CHECK(scaled.path(0, 1).bandwidth_bytes_per_s == 400);
  CHECK(scaled.path(0, 1).latency_s == 0.5);
  CHECK(std::isinf(scaled.path(1, 0).bandwidth_bytes_per_s));
}

TEST_CASE(
    "machines multiply what one of them gets, not lines and links that paths share, and changes likewise") {
  Platform p = uniform(2, 1000, 2000, 0.5);
  p.sites[0].machine_uplink = p.sites[0].machine_downlink = true;
  p.shared_links = {{"line", 700}, {"quota", 600, true}};
  LinkChange uplink, line;
  uplink.bandwidth_bytes_per_s = line.bandwidth_bytes_per_s = 10;
  line.link = LinkChange::Link::shared;
  p.changes = {uplink, line};
  const Platform four = with_machines(p, {4, 4});
  CHECK(four.sites[0].uplink_bytes_per_s == 4000);
  CHECK(four.sites[1].uplink_bytes_per_s == 1000);  // a line
  CHECK(four.path(0, 1).machines == 4);
  CHECK(with_machines(p, {4, 3}).path(0, 1).machines == 3);
  CHECK(four.shared_links[0].bandwidth_bytes_per_s == 700);
  CHECK(four.shared_links[1].bandwidth_bytes_per_s == 600);  // of each connection
  CHECK(*four.changes[0].bandwidth_bytes_per_s == 40);
  CHECK(*four.changes[1].bandwidth_bytes_per_s == 10);
}

TEST_CASE("path(from, to) is directed: row = from") {
  Platform p = uniform(2, 1, 1, 0);
  p.set_latency(0, 1, 3);
  CHECK(p.path(0, 1).latency_s == 3);
  CHECK(p.path(1, 0).latency_s == 0);
}

TEST_CASE("an input error says the key, what it got, what it wants and an example") {
  const fomoe::InputError error("strategy.local_steps", "0", "at least 1", "local_steps = 32");
  CHECK(error.key() == "strategy.local_steps");
  CHECK(std::string(error.what()) ==
        "strategy.local_steps: got 0; expected at least 1; for example local_steps = 32");
}

TEST_CASE("the connections of a site are those of what it sends to a store, and not of what it gets") {
  Platform platform = uniform(2, 1e9, 1e9, 0.01);
  platform.store = Store{};
  platform.sites[1].streams = 8;
  const Platform with_store = with_store_as_site(platform);
  CHECK(with_store.path(1, 2).streams == 8);
  CHECK(with_store.path(2, 1).streams == 0);
  CHECK(with_store.path(0, 2).streams == 0);
}
