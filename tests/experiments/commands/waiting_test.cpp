// What `compare` and `explain` say of the network, and of cases that differ.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>

#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;

}  // namespace

TEST_CASE("what sites wait for is what would remove the waiting") {
  const std::string four = "fomoe compare " + kTwoSites +
                           " --set platform.sites=4 --set strategy.method=diloco --set "
                           "platform.bandwidth=10Gbps --set platform.latency=1ms ";
  const std::pair<const char*, const char*> causes[] = {
      {"--set network_model.payload_rate=50MBps",
       "mostly for hosts that copy payloads (network_model.payload_rate) (the busiest link"},
      {"--set network_model.call_overhead=20s",
       "mostly for the overhead of calls (network_model.call_overhead) (the busiest link"},
      {"--set platform.bandwidth=100Mbps", "mostly for bandwidth (the busiest link"},
      {"--set platform.latency=30s", "mostly for latency (the busiest link"}};
  for (const auto& [settings, text] : causes) {
    const Ran ran = run_in(source_dir(), four + settings + " --case ''");
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    CHECK_MESSAGE(ran.out.find(text) != std::string::npos, ran.out);
    const bool far = std::string(settings).find("latency") != std::string::npos;
    CHECK_MESSAGE((ran.out.find("try strategy.collective=direct") != std::string::npos) == far, ran.out);
  }
  // What one connection was measured to carry is in a platform file.
  const Folder folder;
  std::string platform = "name = 'four'\nsource = 'made for a test'\n";
  for (const char* site : {"a", "b", "c", "d"})
    platform += fmt::format("[[site]]\nname = '{}'\nuplink = '10Gbps'\ndownlink = '10Gbps'\n", site);
  for (const char* from : {"a", "b", "c", "d"})
    for (const char* to : {"a", "b", "c", "d"})
      if (std::string(from) != to)
        platform += fmt::format(
            "[[path]]\nfrom = '{}'\nto = '{}'\nlatency = '1ms'\nconnection_bandwidth = '100Mbps'\n", from,
            to);
  write_all(folder / "four.toml", platform);
  const Ran connections = run_in(
      source_dir(), "fomoe compare " + kTwoSites + " --set strategy.method=diloco --set platform.file='" +
                        (folder / "four.toml") +
                        "' --unset platform.sites --unset platform.bandwidth --unset platform.latency "
                        "--case ''");
  CHECK_MESSAGE(connections.out.find("mostly for the rates of single connections") != std::string::npos,
                (connections.out + connections.err));
  // Between two sites, a ring has as many steps as an exchange with every peer.
  const Ran two =
      run_in(source_dir(), "fomoe compare " + kTwoSites +
                               " --set strategy.method=diloco --set platform.latency=30s --case ''");
  CHECK_MESSAGE(two.out.find("mostly for latency") != std::string::npos, two.out);
  CHECK_MESSAGE(two.out.find("try strategy.collective=direct") == std::string::npos, two.out);
}

TEST_CASE("compare: cases of different models are not ranked without saying so") {
  const std::string said = "do not train the same model on the same workload";
  for (const auto& [other, differs] : {std::pair("model.layers=2", true),
                                       {"workload.tokens=50e6", true},
                                       {"strategy.local_steps=8", false}}) {
    const Ran ran = run_in(source_dir(),
                           "fomoe compare " + kTwoSites + " --engine closed-form --case '' --case " + other);
    CHECK_MESSAGE((ran.out.find(said) != std::string::npos) == differs, ran.out);
  }
}

TEST_CASE("explain: a transfer over links that several paths share has its time, and no note denies it") {
  const auto explained = [](const std::string& collective) {
    const Ran ran = run_in(source_dir(), "fomoe explain " + kTwoSites +
                                             " --set platform.file=../../platforms/two-offices.toml --set "
                                             "strategy.method=diloco --unset platform.bandwidth --unset "
                                             "platform.latency --unset platform.sites --set "
                                             "strategy.collective=" +
                                             collective);
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    CHECK_MESSAGE(ran.out.find("does not model jitter") == std::string::npos, ran.out);
    return ran.out;
  };
  const std::string ring = explained("ring"), direct = explained("direct");
  CHECK_MESSAGE(ring.find("over links that several paths share = ") != std::string::npos, ring);
  // The time of a direct exchange is over all links at once.
  CHECK_MESSAGE(direct.find("over links that several paths share = ") == std::string::npos, direct);
}
