// Tests of what is said before the numbers, and of what fewer connections than were measured mean.
#include "costmodel/compose/warnings.hpp"

#include <doctest/doctest.h>

#include "costmodel/formula/closed_form.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

StepProfile timed() {
  StepProfile profile;
  profile.source = "p.json";
  profile.points.push_back({1, 8, false, 0, {{0.1, 0.2, 0.05}}});
  return profile;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a superseded profile is named with its reason, once, and first in the report") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  CHECK(warnings_about(scenario).empty());
  StepProfile profile = timed();
  profile.model = scenario.model;
  profile.superseded = {"2026-11-26", "measured before a change", "a step takes half as long now"};
  scenario.compute = ProfiledCompute{profile, 1};
  REQUIRE(warnings_about(scenario).size() == 1);
  const std::string text = warnings_about(scenario).front();
  CHECK(text ==
        "the step times of p.json are superseded since 2026-11-26: measured before a change; a step takes "
        "half as long now");
  SiteCompute site{scenario.compute, scenario.gpus, 0, {}, {}};
  scenario.site_compute = {site, site};
  CHECK(warnings_about(scenario).size() == 1);
}

TEST_CASE("points whose threads waited for cores are named") {
  StepProfile profile = timed();
  profile.points.front().waited_share = 0.04;
  CHECK(disturbed_text(profile).empty());
  profile.points.push_back(profile.points.front());
  profile.points.back().waited_share = 0.34;
  CHECK(has(disturbed_text(profile), "at 1 of 2 points threads waited for a core, up to 34 % of the time"));
}

TEST_CASE("points whose steps waited for the device are named, unless it was shared on purpose") {
  StepProfile profile = timed();
  profile.points.front().device_waited_share = 0.12;  // launched kernel by kernel on an idle GPU
  CHECK(disturbed_text(profile).empty());
  profile.points.push_back(profile.points.front());
  profile.points.back().device_waited_share = 0.36;
  CHECK(
      disturbed_text(profile) ==
      "the step times of p.json were disturbed: at 1 of 2 points steps waited for the device, up to 36 % of "
      "the time or more, because of other programs");
  profile.points.back().waited_share = 0.34;
  CHECK(has(disturbed_text(profile), "threads waited for a core"));
  CHECK(has(disturbed_text(profile), "steps waited for the device"));
  profile.shared_device = true;
  CHECK(disturbed_text(profile).empty());
}

TEST_CASE("a plan says that its step times were taken on a shared device, once for each profile") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  CHECK(shared_devices(scenario.compute, scenario.site_compute).empty());
  StepProfile profile = timed();
  profile.model = scenario.model;
  profile.points.front().waited_share = 0.004;
  scenario.compute = ProfiledCompute{profile, 1};
  CHECK(shared_devices(scenario.compute, scenario.site_compute).empty());
  profile.shared_device = true;
  scenario.compute = ProfiledCompute{profile, 1};
  const std::string text =
      "the step times of p.json: timed while other processes shared the device on purpose";
  CHECK(shared_devices(scenario.compute, scenario.site_compute) == text);
  CHECK(warnings_about(scenario).empty());
  profile.points.front().waited_share = 0.2;
  SiteCompute site{ProfiledCompute{profile, 1}, scenario.gpus, 0, {}, {}};
  scenario.site_compute = {site, site};
  CHECK(shared_devices(scenario.compute, scenario.site_compute) ==
        text + "; threads waited for a core 20 % of the time");
}

TEST_CASE("rates that were measured with many connections say what few of them carry") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.platform = platforms::uniform(2, 1.25e9, 1.25e9, 0.075);  // 10 Gb/s, 150 ms
  CHECK(fewer_connections(scenario).empty());
  scenario.platform.measured_connections = 64;
  CHECK(has(fewer_connections(scenario), "measured with 64 connections"));
  CHECK(has(fewer_connections(scenario), "carry at most 0.149 of the 10 Gb/s"));  // 2/3 of 4 MiB ÷ 150 ms
  CHECK(has(fewer_connections(scenario), "this answer leaves it out"));
  scenario.network = linux_host();
  CHECK(has(fewer_connections(scenario), "a simulation includes this"));
  scenario.network.streams = 64;
  CHECK(fewer_connections(scenario).empty());
  scenario.network.streams = 63;  // 9.4 Gb/s
  CHECK(has(fewer_connections(scenario), "carry at most 9.4 of the 10 Gb/s"));
  // Where one connection fills the link, there is nothing to say.
  scenario.network.streams = 1;
  for (platforms::Site& one : scenario.platform.sites) one.uplink_bytes_per_s = 1e7;
  CHECK(fewer_connections(scenario).empty());
}

TEST_CASE("connections that losses or buffers limit say what more of them would carry") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.platform = platforms::uniform(2, 1.25e8, 1.25e8, 0.05);  // 1 Gb/s, 100 ms
  CHECK(more_connections(scenario.platform, scenario.network).empty());
  scenario.network = linux_host();
  // 2/3 of 4 MiB ÷ 100 ms = 0.224 Gb/s
  CHECK(has(more_connections(scenario.platform, scenario.network), "carry at most 0.224 of the 1 Gb/s"));
  CHECK(
      has(more_connections(scenario.platform, scenario.network), "because of the buffers of their sockets"));
  CHECK(has(more_connections(scenario.platform, scenario.network),
            "network_model.streams=5 would carry 100 %"));
  scenario.network.loss_rate = 1e-3;
  scenario.network.congestion_control = CongestionControl::reno;  // 1448 B · √1500 ÷ 100 ms = 0.00449 Gb/s
  CHECK(has(more_connections(scenario.platform, scenario.network), "carry at most 0.00449 of the 1 Gb/s"));
  CHECK(has(more_connections(scenario.platform, scenario.network), "because of lost packets"));
  CHECK(has(more_connections(scenario.platform, scenario.network),
            "network_model.streams=64 would carry 28.7 %"));
  scenario.network.streams = 64;
  CHECK(more_connections(scenario.platform, scenario.network).empty());
  // The connections of a site are its own, and other limits have other names.
  scenario.network = linux_host();
  scenario.network.streams = 9;
  tests::change_each_path(scenario.platform, [](platforms::Path& path) { path.streams = 2; });
  CHECK(has(more_connections(scenario.platform, scenario.network),
            "the 2 of site.site-0.streams carry at most"));
  CHECK(
      has(more_connections(scenario.platform, scenario.network), "site.site-0.streams=5 would carry 100 %"));
  scenario.network.tcp_window_bytes = 1e5;
  CHECK(has(more_connections(scenario.platform, scenario.network), "because of network_model.tcp_window"));
  scenario.network.tcp_window_bytes.reset();
  tests::change_each_path(scenario.platform,
                          [](platforms::Path& path) { path.connection_bytes_per_s = 1e6; });
  CHECK(has(more_connections(scenario.platform, scenario.network), "because of the rate of one connection"));
  tests::change_each_path(scenario.platform, [](platforms::Path& path) {
    path.connection_bytes_per_s = platforms::kUnlimited;
    path.streams = 0;
  });
  for (platforms::Site& one : scenario.platform.sites) one.uplink_bytes_per_s = 1e6;
  scenario.network.streams = 4;
  CHECK(more_connections(scenario.platform, scenario.network).empty());
}

TEST_CASE("a given MFU hides replicas that have no sequence in a step, which is said") {
  Scenario scenario = tests::ideal_scenario("diloco", 2);
  scenario.compute = AssumedDevice{1e15, 0.4, 0};
  scenario.workload.global_batch_sequences = 16;
  const auto about = [&](int gpus) {
    scenario.gpus.count = gpus;
    std::string all;
    for (const std::string& one : warnings_about(scenario)) all += one;
    return all;
  };
  CHECK_FALSE(has(about(8), "compute nothing"));
  CHECK(has(about(32), "32 replicas of the model (32 GPUs) and 8 sequences in a step"));
}
