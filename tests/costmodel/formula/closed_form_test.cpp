// Tests what the closed form reports besides times: the slowest port, the rows of the sites, and the notes
// about what it does not model.
#include "costmodel/formula/closed_form.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/each_path.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;
using doctest::Approx;

TEST_CASE("closed form: the bottleneck is the slowest port of all, uplink or downlink, and how busy it is") {
  Scenario scenario = tests::ideal_scenario("local_sgd", 3);
  scenario.strategy.collective = Collective::direct;
  const auto link = [&] { return closed_form(scenario).bottleneck.link; };
  CHECK(link() == "uplink of site-0");  // the first one of equal ports
  scenario.platform.sites[2].uplink_bytes_per_s = 5e8;
  CHECK(link() == "uplink of site-2");
  scenario.platform.sites[1].downlink_bytes_per_s = 4e8;
  CHECK(link() == "downlink of site-1");
  scenario.platform.sites[0].uplink_bytes_per_s = 3e8;
  CHECK(link() == "uplink of site-0");
  scenario.platform.sites[2].downlink_bytes_per_s = 2e8;
  CHECK(link() == "downlink of site-2");

  // A site sends 2·(M−1)/M·S bytes in a round of 5 steps.
  scenario.platform = platforms::uniform(3, 2e8, 1e9, 0);
  const double bytes = 4.0 / 3 * 2 * static_cast<double>(count_parameters(scenario.model).total());
  const RunReport report = closed_form(scenario);
  CHECK(report.bottleneck.link == "uplink of site-0");
  CHECK(report.bottleneck.link_busy_share == Approx(bytes / 2e8 / (5 + bytes / 2e8)).epsilon(1e-9));
  CHECK(report.bottleneck.limited_by == (bytes / 2e8 > 5 ? "communication" : "compute"));
}

TEST_CASE("closed form: each site's compute, exposed communication, idle time and bytes, by hand") {
  Scenario scenario = tests::ideal_scenario("local_sgd", 2);
  scenario.platform.sites[1].compute_factor = 1.5;
  const RunReport report = closed_form(scenario);
  const double bytes = 2.0 * static_cast<double>(count_parameters(scenario.model).total());
  const double round_s = 5 * 1.5 + bytes / 1e9;
  CHECK(report.round.duration_s == Approx(round_s).epsilon(1e-12));
  CHECK(report.wall_clock_s == Approx(12 * round_s).epsilon(1e-12));
  CHECK(report.sites[0].compute_s == Approx(5).epsilon(1e-12));
  CHECK(report.sites[1].compute_s == Approx(7.5).epsilon(1e-12));
  CHECK(report.sites[0].idle_s == Approx(2.5).epsilon(1e-12));
  CHECK(report.sites[1].idle_s == Approx(0).epsilon(1e-12));
  for (const SiteReport& site : report.sites) {
    CHECK(site.exposed_communication_s == Approx(bytes / 1e9).epsilon(1e-12));
    CHECK(site.bytes_sent == Approx(12 * bytes).epsilon(1e-12));
    CHECK(site.bytes_received == Approx(12 * bytes).epsilon(1e-12));
  }
  CHECK(report.round.compute_s == Approx((5 + 7.5) / 2).epsilon(1e-12));
  CHECK(report.compute_utilization == Approx((5 + 7.5) / 2 / round_s).epsilon(1e-12));
}

TEST_CASE("closed form: the busiest port is that of the site with most bytes for its rate, below 100 %") {
  Scenario scenario = tests::ideal_scenario("fedavg", 4);  // the server is at the first site
  for (platforms::Site& site : scenario.platform.sites)
    site.uplink_bytes_per_s = site.downlink_bytes_per_s = 1e6;
  scenario.platform.sites[0].uplink_bytes_per_s = scenario.platform.sites[0].downlink_bytes_per_s = 100e6;
  const auto share = [&](const RunReport& report, std::size_t site, double rate) {
    return report.sites[site].bytes_sent / rate / report.wall_clock_s;
  };
  for (const char* method : {"fedavg", "async_diloco"}) {
    scenario.strategy.method = find_method(method);
    CAPTURE(method);
    RunReport report = closed_form(scenario);
    CHECK(report.bottleneck.link == "uplink of site-1");  // a worker's, of a hundredth of the server's rate
    CHECK(report.bottleneck.link_busy_share == Approx(share(report, 1, 1e6)).epsilon(1e-9));
    CHECK(report.bottleneck.link_busy_share < 1);
    Scenario equal = scenario;
    for (platforms::Site& site : equal.platform.sites)
      site.uplink_bytes_per_s = site.downlink_bytes_per_s = 1e6;
    report = closed_form(equal);
    CHECK(report.bottleneck.link == "uplink of site-0");
    CHECK(report.bottleneck.link_busy_share == Approx(share(report, 0, 1e6)).epsilon(1e-9));
    CHECK(report.bottleneck.link_busy_share < 1);
  }
}

TEST_CASE("closed form: each term that it does not model is noted, and the others are not") {
  const auto noted = [](const std::function<void(Scenario&)>& change) {
    Scenario scenario = tests::ideal_scenario("local_sgd", 2);
    change(scenario);
    const auto& notes = closed_form(scenario).notes;
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.starts_with("the closed form does not model") ||
             note.starts_with("the closed form counts the windows") ||
             note.starts_with("the closed form lets a link that several paths share");
    });
  };
  CHECK_FALSE(noted([](Scenario&) {}));
  CHECK_FALSE(noted([](Scenario& x) { x.network.latency_factor = 2; }));
  CHECK_FALSE(noted([](Scenario& x) { x.network.background_share = 0.5; }));
  CHECK_FALSE(noted([](Scenario& x) { x.network.bandwidth_efficiency = 0.5; }));
  CHECK_FALSE(noted([](Scenario& x) { x.network.tcp_window_bytes = 1e6; }));
  CHECK_FALSE(noted([](Scenario& x) { x.network.loss_rate = 1e-4; }));
  CHECK(noted([](Scenario& x) { x.network.initial_window_bytes = 14'600; }));
  CHECK(noted([](Scenario& x) { x.network.jitter_s = 0.01; }));
  CHECK(noted([](Scenario& x) { x.network.call_overhead_s = 0.01; }));
  CHECK(noted([](Scenario& x) { x.network.ring_model = RingModel::fluid; }));
  CHECK(noted([](Scenario& x) { x.strategy.bucket_bytes = 1; }));
  CHECK(noted([](Scenario& x) { x.strategy.granularity = Granularity::tensor; }));
  CHECK(noted([](Scenario& x) { x.variation.coefficient = 0.1; }));
  CHECK(noted([](Scenario& x) {
    x.platform.shared_links = {{"backbone", 1e9}};
    x.platform.share(0, 1, {0});
  }));
  CHECK(noted([](Scenario& x) {
    platforms::LinkChange change;
    change.at_s = 1;
    change.bandwidth_bytes_per_s = 1e8;
    x.platform.changes = {change};
  }));
}

TEST_CASE("closed form: each site's compute, exposed communication and idle time add up to the round") {
  for (const Method& method : methods()) {
    CAPTURE(method.name);
    Scenario scenario = tests::every_axis_scenario(method.name, 4);
    scenario.platform = platforms::uniform(4, 1e8, 1e8, 0.05);
    const RunReport report = closed_form(scenario);
    for (const SiteReport& site : report.sites)
      CHECK(site.compute_s + site.exposed_communication_s + site.idle_s ==
            Approx(report.round.duration_s).epsilon(1e-9));
  }
}
