// Tests of the lines about validation: whether a scenario lies outside of the validated ranges, and how
// accurate predictions like it were.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;

namespace {

// The line of the answer that begins so; empty if there is none.
std::string line_of(const std::string& begin, const std::string& overrides) {
  const Ran ran = run_in(source_dir(), "fomoe simulate experiments/validation/base.toml " + overrides);
  REQUIRE(ran.exit_status == 0);
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(begin)) return line;
  return "";
}

std::string validation_line(const std::string& overrides) { return line_of("Validation: ", overrides); }
std::string accuracy_line(const std::string& overrides) { return line_of("Accuracy: ", overrides); }

// The validation includes runs of this method with four sites at 200 Mb/s and 50 ms.
const std::string kInside =
    "--set platform.sites=4 --set platform.bandwidth=200Mbps --set platform.latency=50ms "
    "--set model.d_model=128 --set model.d_expert=64 --set model.vocabulary=512 ";

}  // namespace

TEST_CASE("simulate says whether a case lies inside of the validated ranges, and else how far outside") {
  const std::string& inside = kInside;
  CHECK(validation_line(inside).find("inside the ranges") != std::string::npos);

  const std::string far =
      validation_line(inside + " --set platform.latency=400ms --set platform.bandwidth=10Gbps");
  CHECK(far.find("latency 400 ms: 1.36 times the maximum of the validated range (1 ms to 294 ms)") !=
        std::string::npos);
  CHECK(far.find("link rate 10 Gbit/s: 10 times the maximum of the validated range (4 Mbit/s to 1 Gbit/s)") !=
        std::string::npos);
  CHECK(validation_line(inside + " --set strategy.method=gossip")
            .find("method gossip: the validated methods are ddp, ") != std::string::npos);
  CHECK(validation_line(inside + " --set platform.sites=8").find("sites 8: 1.33 times the maximum") !=
        std::string::npos);
}

TEST_CASE("simulate says how accurate predictions with the same network terms and latencies were") {
  CHECK(has(accuracy_line(""),
            "real runs with equal latencies, predicted without network terms, had errors of "));
  const std::string unequal = "--set platform.file=../../platforms/two-offices.toml --set platform.sites=3 ";
  CHECK(has(accuracy_line(unequal), "real runs with unequal latencies, predicted without network terms"));
  CHECK(has(accuracy_line(unequal + "--set network_model.host=linux"),
            "unequal latencies, predicted with the terms of an ordinary Linux host"));
  CHECK(has(accuracy_line("--set network_model.host=linux --set network_model.uplink_queue=router "
                          "--set network_model.congestion_control=bbr"),
            "predicted with the terms of an ordinary Linux host"));
  CHECK(has(accuracy_line("--set network_model.host=linux --set network_model.payload_rate=5Gbps"),
            "unknown, because no real run was predicted with these network terms"));
  CHECK(has(accuracy_line("--set network_model.jitter=1ms"),
            "unknown, because no real run was predicted with these network terms"));
  // Rates of payload have no headers in them.
  CHECK(has(accuracy_line("--set network_model.host=linux --set platform.sites=4 "
                          "--set platform.file=../../platforms/eight-regions.toml"),
            "predicted with the terms of an ordinary Linux host"));
  CHECK(accuracy_line("--set platform.sites=1").empty());
}

TEST_CASE("no interval is given outside of what was compared, unless the run hardly waits") {
  const auto interval = [](const std::string& settings) {
    const Ran ran = run_in(
        source_dir(), "fomoe simulate experiments/validation/base.toml --output - " + kInside + settings);
    return nlohmann::json::parse(ran.out).at("interval");
  };
  CHECK(interval("").contains("low_s"));
  for (const std::string outside :
       {"--set platform.latency=400ms", "--set platform.bandwidth=10Gbps", "--set platform.sites=16",
        "--set strategy.method=gossip",
        // half of a link of 200 Mb/s through a send buffer of 500 kB
        "--set network_model.host=linux --set platform.latency=50ms --set platform.bandwidth=200Mbps --set "
        "network_model.send_buffer=1MB"}) {
    CAPTURE(outside);
    const std::string waiting = outside + " --set compute.step_time=1ms";
    CHECK(interval(waiting).at("withheld").get<std::string>().find("outside of the conditions") !=
          std::string::npos);
    CHECK(!interval(waiting).contains("low_s"));
    const Ran text =
        run_in(source_dir(), "fomoe simulate experiments/validation/base.toml " + kInside + waiting);
    CHECK(has(text.out, "95 % interval: none is given"));
    const auto computing = interval(outside + " --set compute.step_time=1000s");
    REQUIRE(computing.contains("low_s"));
    CHECK(has(computing.dump(), "within a factor of 2"));
  }
}

TEST_CASE("the interval has the p95 error of what runs take beside computation, and of nothing else") {
  double width_before_s = 0;
  for (const std::string step : {"1ms", "1s", "100s"}) {
    CAPTURE(step);
    const Ran ran = run_in(source_dir(), "fomoe simulate experiments/validation/base.toml --output - " +
                                             kInside + " --set compute.step_time=" + step);
    const auto report = nlohmann::json::parse(ran.out);
    const double wall_clock_s = report.at("wall_clock_s"),
                 p95 = report.at("accuracy").at("waiting_p95_error");
    const double waits_s = wall_clock_s * (1 - report.at("compute_utilization").get<double>());
    const double low_s = report.at("interval").at("low_s"), high_s = report.at("interval").at("high_s");
    CHECK(p95 > 0);
    CHECK(low_s == doctest::Approx(wall_clock_s - waits_s + waits_s / (1 + p95)));
    CHECK(high_s == doctest::Approx(wall_clock_s - waits_s + waits_s / (1 - p95)));
    // Longer steps make the run longer, and its interval not wider.
    if (width_before_s > 0) CHECK(high_s - low_s == doctest::Approx(width_before_s).epsilon(1e-6));
    width_before_s = high_s - low_s;
  }
}

TEST_CASE("the interval has the spread of assumed MFUs, also where one site has its own") {
  const std::string assumed =
      "fomoe simulate experiments/scenarios/four-regions.toml --sensitivity none --output - ";
  const auto computation = [&](const std::string& more) {
    const Ran ran = run_in(source_dir(), assumed + more);
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    const nlohmann::json interval = nlohmann::json::parse(ran.out)["interval"];
    for (const nlohmann::json& part : interval["parts"])
      if (part["what"] == "computation") return part;
    return nlohmann::json();
  };
  const nlohmann::json alike = computation(""), own = computation("--set site.aws:us-east-1.mfu=0.3");
  CHECK(alike["above_s"] > 1e5);
  CHECK(own["above_s"].get<double>() == doctest::Approx(alike["above_s"].get<double>()).epsilon(1e-6));
  CHECK(own["how"].get<std::string>().starts_with("the assumed MFU of 30.0 %, where"));
  // A site with twice the MFU is not the one that others wait for.
  CHECK(computation("--set site.aws:us-east-1.mfu=0.6")["above_s"] > 1e5);
  CHECK(computation("--unset compute.mfu --set compute.step_time=10s")["how"] ==
        "the step time is given, and taken as exact");
}
