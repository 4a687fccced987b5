// Tests the layout of an emulated platform: links, routes, addresses, environment variables and CPU cores.
#include <doctest/doctest.h>

#include <map>

#include "platforms/support/input_error.hpp"
#include "platforms/wan/check/check.hpp"
#include "platforms/wan/network/layout.hpp"
#include "platforms/wan/session/cpu_quota.hpp"

using namespace fomoe::platforms;
using namespace fomoe::platforms::wan;

namespace {

Platform three_sites() {
  Platform p = uniform(3, 10e6, 20e6, 0.010);  // 80 Mbit/s up, 160 down
  p.paths.set(0, 1, {0.030, 4e6, -1});
  return p;
}

}  // namespace

TEST_CASE("layout: the slowest link of a route is the rate of the pair") {
  const Layout layout = lay_out(three_sites(), {});
  CHECK(layout.rate_bytes_per_s(0, 1) == 4e6);   // the path
  CHECK(layout.rate_bytes_per_s(1, 0) == 10e6);  // the uplink
  CHECK(layout.rate_bytes_per_s(0, 2) == 10e6);
  CHECK(layout.route(0, 1).links.size() == 3);
  CHECK(layout.route(1, 0).links.size() == 2);
}

TEST_CASE("layout: a round trip is both latencies and the time through each link") {
  const Layout layout = lay_out(three_sites(), {});
  // The latency is 30 ms there and 10 ms back. 1000 bytes pass links of 10, 4 and 20 MB/s there, and of 10
  // and 20 MB/s back.
  const double there_s = 1000 / 10e6 + 1000 / 4e6 + 1000 / 20e6, back_s = 1000 / 10e6 + 1000 / 20e6;
  CHECK(layout.round_trip_s(0, 1, 1000) == doctest::Approx(0.040 + there_s + back_s).epsilon(1e-12));
  CHECK(layout.round_trip_s(1, 0, 1000) == doctest::Approx(0.040 + there_s + back_s).epsilon(1e-12));
}

TEST_CASE("layout: what the relay may have to carry is what all can send or receive, the smaller") {
  // Every uplink is full: 3 × 10 MB/s. The downlinks could carry 60 MB/s.
  CHECK(lay_out(three_sites(), {}).aggregate_bytes_per_s() == 30e6);
  // Site 0 sends over one path of 4 MB/s only, which cannot fill its uplink.
  Platform two = uniform(2, 10e6, 20e6, 0.010);
  two.set_path_rate(0, 1, 4e6);
  CHECK(lay_out(two, {}).aggregate_bytes_per_s() == 14e6);
}

TEST_CASE("layout: a queue holds 8 times its rate times its longest round trip, and at least 256 KiB") {
  const Layout layout = lay_out(three_sites(), {});
  CHECK(layout.links[0].queue_bytes ==
        doctest::Approx(8 * 10e6 * 0.040));  // uplink of site 0: 30 + 10 ms to site 1
  const Layout shallow = lay_out(three_sites(), {.queue_bytes = {}, .queue_products = 1});
  CHECK(shallow.links[0].queue_bytes == doctest::Approx(10e6 * 0.040));
  CHECK(shallow.links[4].queue_bytes == 256 * 1024);  // uplink of site 2: 10 MB/s × 20 ms
  CHECK(lay_out(three_sites(), {.queue_bytes = 5000.0}).links[0].queue_bytes == 5000);
}

TEST_CASE("layout: links are shared by all paths that name them") {
  Platform p = uniform(3, 10e6, 10e6, 0.010);
  p.shared_links = {{"office", 7e6}, {"transit", 9e6}};
  p.share(0, 2, {0});
  p.share(1, 2, {0, 1});
  const Layout layout = lay_out(p, {});
  CHECK(layout.rate_bytes_per_s(0, 2) == 7e6);
  CHECK(layout.route(0, 2).links[1] == layout.route(1, 2).links[1]);
  CHECK(layout.route(1, 2).links.size() == 4);
  CHECK(layout.route(0, 1).links.size() == 2);
  p.shared_links[1].per_flow = true;
  CHECK_THROWS_WITH((void)lay_out(p, {}), doctest::Contains("which limits each flow by itself"));
}

TEST_CASE("layout: addresses are found again, and others are nobody's") {
  const Layout layout = lay_out(three_sites(), {});
  CHECK(dotted(layout.sites[0].address) == "10.83.0.1");
  CHECK(dotted(layout.sites[2].address) == "10.83.0.3");
  CHECK(layout.site_of(layout.sites[2].address) == 2);
  CHECK(layout.site_of(layout.sites[2].address + 1) == -1);
  CHECK(layout.site_of(layout.sites[0].address - 1) == -1);
}

TEST_CASE("layout: links that change and too many sites are refused by name") {
  Platform changing = three_sites();
  changing.changes.push_back({1.0, LinkChange::Link::uplink, 0, 0, 1e6, {}});
  CHECK_THROWS_AS(lay_out(changing, {}), fomoe::InputError);
  CHECK_THROWS_AS(lay_out(uniform(kMostSites + 1, 1e6, 1e6, 0.01), {}), fomoe::InputError);
  CHECK_NOTHROW(lay_out(uniform(kMostSites, 1e6, 1e6, 0.01), {}));
}

TEST_CASE("layout: what CMD finds in its environment") {
  const Layout layout = lay_out(three_sites(), {});
  const auto list = process_environment(layout, {2}, 12345, "/r.json", /*checked=*/true);
  const std::map<std::string, std::string> environment(list.begin(), list.end());
  CHECK(environment.at("RANK") == "2");
  CHECK(environment.at("WORLD_SIZE") == "3");
  CHECK(environment.at("LOCAL_RANK") == "0");
  CHECK(environment.at("MASTER_ADDR") == "10.83.0.1");
  CHECK(environment.at("MASTER_PORT") == "12345");
  CHECK(environment.at("GLOO_SOCKET_IFNAME") == "wan0");
  CHECK(environment.at("FOMOE_REPORT") == "/r.json");
  CHECK(environment.at("FOMOE_LINKS") == "emulated and checked");
  for (const auto& [name, value] : process_environment(layout, {0}, 1, "", /*checked=*/false)) {
    CHECK(name != "FOMOE_REPORT");
    if (name == "FOMOE_LINKS") CHECK(value == "emulated");
  }
}

TEST_CASE("layout: the processes of a site have consecutive ranks") {
  const Layout layout = lay_out(three_sites(), {});
  for (int site = 0; site < 3; ++site) {
    for (int local_rank = 0; local_rank < 4; ++local_rank) {
      const auto list = process_environment(layout, {site, local_rank, 4}, 1, "", true);
      const std::map<std::string, std::string> environment(list.begin(), list.end());
      CHECK(environment.at("RANK") == std::to_string(4 * site + local_rank));
      CHECK(environment.at("LOCAL_RANK") == std::to_string(local_rank));
      CHECK(environment.at("WORLD_SIZE") == "12");
      CHECK(environment.at("MASTER_ADDR") == "10.83.0.1");
    }
  }
}

TEST_CASE("cores: the relay keeps one, sites get their own while there are enough") {
  const CoreShares own = share_cores({2, 3, 5, 7, 11}, 2, 2);
  CHECK(own.relay == 2);
  CHECK(own.sites == std::vector<std::vector<int>>{{3, 5}, {7, 11}});
  CHECK_FALSE(own.shared);
  const CoreShares shared = share_cores({0, 1}, 3, 1);
  CHECK(shared.sites == std::vector<std::vector<int>>{{1}, {1}, {1}});
  CHECK(shared.shared);
  CHECK_THROWS_AS(share_cores({0, 1}, 1, 2), fomoe::InputError);
  CHECK_THROWS_AS(share_cores({0}, 1, 1), fomoe::InputError);
}

TEST_CASE("check: 5 % of a rate is allowed, and 5 % or half a millisecond of a round trip") {
  const Layout layout = lay_out(uniform(2, 10e6, 10e6, 0.010), {});
  Check check;
  const auto misses_of = [&](double rate, double round_trip_s) {
    check.pairs = {{0, 1, 10e6, {rate, 10e6}, 0.020, {0.020, round_trip_s}}};
    return misses(check, layout).size();
  };
  CHECK(misses_of(9.51e6, 0.020) == 0);
  CHECK(misses_of(9.49e6, 0.020) == 1);
  CHECK(misses_of(10.51e6, 0.020) == 1);
  CHECK(misses_of(10e6, 0.0209) == 0);
  CHECK(misses_of(10e6, 0.0211) == 1);
  CHECK(misses_of(9e6, 0.0189) == 2);
  check.pairs = {{0, 1, 10e6, {10e6, 10e6}, 0.002, {0.0024, 0.0026}}};
  REQUIRE(misses(check, layout).size() == 1);
  CHECK(misses(check, layout)[0].find("all pairs together") != std::string::npos);
}

TEST_CASE("check: half of what the relay carries may be asked for") {
  Check check;
  check.relay_bytes_per_s = 100;
  check.aggregate_bytes_per_s = 50;
  CHECK(too_much_for_relay(check).empty());
  check.aggregate_bytes_per_s = 51;
  CHECK_FALSE(too_much_for_relay(check).empty());
}

TEST_CASE("quota: the group of this process, where the cpu controller is mounted") {
  using fomoe::platforms::wan::find_group;
  const std::string first =
      "30 25 0:26 / /sys/fs/cgroup rw shared:9 - tmpfs tmpfs rw\n"
      "35 30 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
      "36 30 0:32 / /sys/fs/cgroup/cpuset rw shared:11 - cgroup cgroup rw,cpuset\n"
      "37 30 0:33 / /sys/fs/cgroup/unified rw shared:12 - cgroup2 cgroup2 rw\n";
  CHECK(find_group(first, "4:cpuset:/\n3:cpu,cpuacct:/user.slice\n0::/session\n").path ==
        "/sys/fs/cgroup/cpu,cpuacct/user.slice");
  CHECK(find_group(first, "3:cpu,cpuacct:/\n").path == "/sys/fs/cgroup/cpu,cpuacct");
  const std::string second =
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  const auto unified = find_group(second, "0::/user.slice/run-1.scope\n");
  CHECK(unified.path == "/sys/fs/cgroup/user.slice/run-1.scope");
  CHECK(unified.unified);
  CHECK(find_group("36 30 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n", "4:cpuset:/\n")
            .path.empty());
}
