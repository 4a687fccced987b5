// Tests `fomoe probe` with the real iperf3 over links that fomoe-wan emulates: it must measure the emulated
// values.
#include <doctest/doctest.h>

#include <tuple>
#include <utility>

#include "experiments/files/platform_file.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;

namespace {

bool possible() {
  const Ran wan =
      run_in(source_dir(), "fomoe-wan run experiments/scenarios/two-sites.toml --no-check -- true");
  if (wan.exit_status != 0) MESSAGE("skipped, since this machine cannot: " << wan.err);
  const Ran iperf3 = run_in(source_dir(), "iperf3 --version");
  if (iperf3.exit_status != 0) MESSAGE("skipped: iperf3 is not installed");
  return wan.exit_status == 0 && iperf3.exit_status == 0;
}

platforms::Platform probed(const std::string& scenario, const std::string& settings,
                           const std::string& options) {
  const Folder folder;
  const Ran ran = run_in(source_dir(), "fomoe-wan run " + scenario + " " + settings + " -- fomoe probe " +
                                           options + " --output " + (folder / "p.toml"));
  INFO(ran.out, ran.err);
  REQUIRE(ran.exit_status == 0);
  MESSAGE(read_all(folder / "p.toml"));
  // The measured platform must work in a simulation, as users would run it.
  const Ran simulated = run_in(source_dir(),
                               "fomoe simulate experiments/scenarios/two-sites.toml --set "
                               "strategy.expert_overlap=2 --set platform.sites=2 --set platform.file=" +
                                   (folder / "p.toml"));
  CHECK(simulated.exit_status == 0);
  return scenario::read_platform_file(folder / "p.toml");
}

/// Payload fraction of a full segment: 1448 of 1500 bytes, with TCP timestamps.
constexpr double kPayload = 1448.0 / 1500;

void check_within_a_tenth(double measured, double asked) {
  CHECK(measured >= 0.9 * asked);
  CHECK(measured <= 1.1 * asked);
}

}  // namespace

TEST_CASE("probe: two sites with unequal links") {
  if (!possible()) return;
  const platforms::Platform p = probed("experiments/scenarios/two-sites.toml",
                                       "--set platform.uplink=40Mbps --set platform.downlink=100Mbps --set "
                                       "platform.latency=15ms",
                                       "--streams 1,4 --seconds 3 --repeat 2");
  REQUIRE(p.size() == 2);
  for (const int from : {0, 1}) {
    check_within_a_tenth(p.path(from, 1 - from).bandwidth_bytes_per_s, 5e6 * kPayload);
    check_within_a_tenth(p.path(from, 1 - from).latency_s, 0.015);
    check_within_a_tenth(p.sites[static_cast<std::size_t>(from)].uplink_bytes_per_s, 5e6 * kPayload);
  }
}

TEST_CASE("probe: three sites with paths of their own below what the sites can send") {
  if (!possible()) return;
  const Folder folder;
  const auto site = [](const std::string& name) {
    return "[[site]]\nname = \"" + name + "\"\nuplink = \"60Mbps\"\ndownlink = \"80Mbps\"\n";
  };
  std::string toml = "name = \"asked\"\nsource = \"this test\"\n" + site("a") + site("b") + site("c");
  const auto path = [&](const std::string& from, const std::string& to, const std::string& rest) {
    toml += "[[path]]\nfrom = \"" + from + "\"\nto = \"" + to + "\"\n" + rest;
  };
  for (const auto& [one, other, latency] :
       {std::tuple{"a", "b", "5ms"}, std::tuple{"a", "c", "20ms"}, std::tuple{"b", "c", "30ms"}}) {
    for (const auto& [from, to] : {std::pair{one, other}, std::pair{other, one}})
      path(from, to, std::string("latency = \"") + latency + "\"\nbandwidth = \"40Mbps\"\n");
  }
  write_all(folder / "asked.toml", toml);
  const platforms::Platform p = probed(
      "experiments/scenarios/two-sites.toml",
      "--set strategy.expert_overlap=3 --set platform.sites=3 --set platform.file=" + (folder / "asked.toml"),
      "--streams 4 --seconds 3 --repeat 1");
  REQUIRE(p.size() == 3);
  const double path_rate = 5e6 * kPayload;
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      if (from != to) check_within_a_tenth(p.path(from, to).bandwidth_bytes_per_s, path_rate);
    }
    // Two paths of 40 Mbit/s fill the uplink of 60 Mbit/s and the downlink of 80 Mbit/s.
    check_within_a_tenth(p.sites[static_cast<std::size_t>(from)].uplink_bytes_per_s, 7.5e6 * kPayload);
    check_within_a_tenth(p.sites[static_cast<std::size_t>(from)].downlink_bytes_per_s, 10e6 * kPayload);
  }
  check_within_a_tenth(p.path(0, 1).latency_s, 0.005);
  check_within_a_tenth(p.path(2, 0).latency_s, 0.020);
  check_within_a_tenth(p.path(1, 2).latency_s, 0.030);
}
