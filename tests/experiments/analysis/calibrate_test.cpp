// Tests of `fomoe calibrate` on runs that were simulated with known terms, and on data that cannot support a
// fit.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/experiments/measured_by_simulation.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {

constexpr double kNoise = 0.01;

Ran program(const Folder& folder, const std::string& arguments) {
  return run_in(folder.path(), "fomoe " + arguments);
}

/// Writes runs with payloads of 0.2 to 200 MB on links of 100 Mb/s to 1 Gb/s and 5 to 50 ms, with ring and
/// direct.
void write_runs(const Folder& folder, const std::vector<std::string>& truth, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, kNoise);
  int n = 0;
  for (const char* d_model : {"32", "128", "512"}) {
    for (const char* rate : {"100Mbps", "1Gbps"}) {
      for (const char* latency : {"5ms", "50ms"}) {
        for (const char* collective : {"ring", "direct"}) {
          write_measured_run(
              folder / ("run-" + std::to_string(n++) + ".json"), kTwoSites,
              {"workload.tokens=4194304", "workload.global_batch_sequences=128", "strategy.method=diloco",
               "strategy.local_steps=8", std::string("model.d_model=") + d_model,
               std::string("model.d_expert=") + d_model, "model.vocabulary=512", "model.layers=2",
               "platform.sites=4", "strategy.expert_overlap=4", std::string("platform.bandwidth=") + rate,
               std::string("platform.latency=") + latency, std::string("strategy.collective=") + collective},
              truth, normal(random));
        }
      }
    }
  }
}

json term(const json& answer, const std::string& name) {
  for (const json& one : answer["terms"]) {
    if (one["name"] == name) return one;
  }
  FAIL("no term " << name);
  return {};
}

/// Checks that the interval of a fitted term contains its true value. The interval of the window goes from
/// one tried value that is too small to one that is too large, since its fit tries some values only.
void check_holds(const json& fitted, double truth, double width = 0.5) {
  CAPTURE(fitted.dump());
  REQUIRE(fitted["supported"] == true);
  CHECK(fitted["low95"].get<double>() <= truth);
  CHECK(fitted["high95"].get<double>() >= truth);
  CHECK(fitted["high95"].get<double>() - fitted["low95"].get<double>() < width * truth);
}

}  // namespace

TEST_CASE(
    "the fit recovers the runs' terms within their intervals, and the fitted file predicts other runs") {
  const Folder folder;
  const std::vector<std::string> truth = {"network_model.bandwidth_efficiency=0.9",
                                          "network_model.call_overhead=4ms",
                                          "network_model.payload_rate=4Gbps"};
  write_runs(folder, truth, 7);
  Ran ran = program(
      folder, "calibrate run-*.json --terms bandwidth_efficiency,call_overhead,payload_rate --output -");
  INFO(ran.err);
  REQUIRE(ran.exit_status == 0);
  const json answer = json::parse(ran.out);
  check_holds(term(answer, "bandwidth_efficiency"), 0.9);
  check_holds(term(answer, "call_overhead"), 0.004);
  check_holds(term(answer, "payload_rate"), 4e9 / 8);
  CHECK(answer["relative_standard_deviation"].get<double>() == doctest::Approx(kNoise).epsilon(0.5));
  CHECK(answer["runs"].size() == 24);

  REQUIRE(program(folder, "calibrate run-*.json --output fitted.toml").exit_status == 0);
  CHECK(program(folder, "validate run-3.json --network-model fitted.toml").exit_status == 2);
  write_measured_run(folder / "new.json", kTwoSites, {"strategy.local_steps=8"}, truth);
  ran = program(folder, "validate new.json --network-model fitted.toml --limit wall_clock=0.02");
  CHECK(ran.exit_status == 0);
  CHECK(program(folder, "validate new.json --limit wall_clock=0.02").exit_status == 1);  // no fitted model
}

TEST_CASE("data that cannot support a fit give exit status 1 and the reason") {
  const Folder folder;
  for (int i = 0; i < 8; ++i)
    write_measured_run(folder / ("run-" + std::to_string(i) + ".json"), kTwoSites, {},
                       {"network_model.bandwidth_efficiency=0.8"}, 0.01 * (i % 3));
  const Ran one = program(folder, "calibrate run-0.json");
  CHECK(one.exit_status == 1);
  CHECK(one.err.find("too few observations: 1; at least 2 are needed") != std::string::npos);
  // One payload size on one link determines one number only, and not the term to which it belongs.
  const Ran one_size = program(folder, "calibrate run-*.json --terms bandwidth_efficiency,payload_rate");
  INFO(one_size.out, one_size.err);
  CHECK(one_size.exit_status == 0);
  CHECK(one_size.out.find("payload_rate is not fitted: its effect cannot be distinguished from that of "
                          "bandwidth_efficiency") != std::string::npos);
  CHECK(program(folder, "calibrate run-*.json --terms latency").exit_status == 2);
  CHECK(program(folder, "calibrate nothing.json").exit_status == 2);
}

TEST_CASE("collectives from a CSV: a fit by hand, and mistakes with file and line") {
  const Folder folder;
  // Direct exchange between 2 sites: 2 · (latency + S/2 ÷ (0.8 · rate)).
  std::string csv = "collective,sites,payload,bandwidth,latency,seconds\n";
  for (const double megabytes : {1.0, 4.0, 10.0, 40.0, 100.0}) {
    const double seconds = 2 * (0.01 + megabytes * 1e6 / 2 / (0.8 * 1e9 / 8));
    csv += "direct,2," + std::to_string(megabytes) + "MB,1Gbps,10ms," + std::to_string(seconds) + "\n";
  }
  write_all(folder / "c.csv", csv);
  const Ran ran = program(
      folder, "calibrate c.csv --set network_model.host=ideal --terms bandwidth_efficiency --output -");
  INFO(ran.err);
  REQUIRE(ran.exit_status == 0);
  CHECK(term(json::parse(ran.out), "bandwidth_efficiency")["value"].get<double>() ==
        doctest::Approx(0.8).epsilon(1e-4));
  // With what it prints, a simulation is the model that was fitted: not the default host.
  const std::string table = program(folder,
                                    "calibrate c.csv --set network_model.host=ideal --set "
                                    "network_model.send_buffer=64MiB --set network_model.queue_bdp=8 "
                                    "--terms bandwidth_efficiency")
                                .out;
  CHECK(has(table, "[network_model]\nhost = \"ideal\"\n"));
  CHECK(has(table, "send_buffer = \"67108864B\"  # given, not fitted\n"));
  CHECK(has(table, "queue_bdp = 8  # given, not fitted\n"));
  const auto said = [&](const std::string& row) {
    write_all(folder / "bad.csv", "collective,sites,payload,bandwidth,latency,seconds\n" + row + "\n");
    const Ran bad = program(folder, "calibrate bad.csv");
    CHECK(bad.exit_status == 2);
    return bad.err;
  };
  CHECK(said("rings,2,1MB,1Gbps,10ms,1").find("bad.csv:2: collective: got \"rings\"") != std::string::npos);
  CHECK(said("ring,2,1,1Gbps,10ms,1").find("bad.csv:2: payload: got") != std::string::npos);
  CHECK(said("ring,2,1MB,1Gbps,10ms,-1").find("bad.csv:2: seconds: got \"-1\"") != std::string::npos);
  CHECK(said("ring,2,1MB").find("bad.csv:2: row: got 3 cells") != std::string::npos);
}

TEST_CASE(
    "reports of iperf3: the efficiency from full links, and the window from streams that do not fill one") {
  const Folder folder;
  const std::string real = read_all(source_dir() + "/tests/experiments/data/iperf3/one-stream.json");
  const auto report = [&](const std::string& name, int streams, double megabits_per_s) {
    json one = json::parse(real);
    one["start"]["test_start"]["num_streams"] = streams;
    one["end"]["sum_received"]["bits_per_second"] = megabits_per_s * 1e6;
    write_all(folder / name, one.dump());
  };
  // 1 Gbit/s, of which 0.95 is payload; round trip 100 ms, window 1 MB: 80 Mbit/s per stream, ± 1 %.
  report("a.json", 1, 80.8);
  report("b.json", 2, 158.4);
  report("c.json", 4, 320);
  report("d.json", 16, 945);
  report("e.json", 32, 955);
  const Ran ran = program(folder,
                          "calibrate a.json b.json c.json d.json e.json --link-rate 1Gbps --round-trip "
                          "100ms --output -");
  INFO(ran.out, ran.err);
  REQUIRE(ran.exit_status == 0);
  const json answer = json::parse(ran.out);
  check_holds(term(answer, "bandwidth_efficiency"), 0.95, 0.1);
  check_holds(term(answer, "tcp_window"), 1e6, 0.1);
  const Ran text =
      program(folder, "calibrate a.json b.json c.json d.json e.json --link-rate 1Gbps --round-trip 100ms");
  CHECK(text.out.find("tcp_window = \"") != std::string::npos);
  // All links are full, so that the window is unknown.
  report("a.json", 1, 940);
  report("b.json", 2, 950);
  report("c.json", 4, 960);
  const Ran full =
      program(folder, "calibrate a.json b.json c.json d.json e.json --link-rate 1Gbps --round-trip 100ms");
  INFO(full.out, full.err);
  CHECK(full.exit_status == 0);
  CHECK(full.out.find("tcp_window is not fitted: ") != std::string::npos);
  const auto refused = [&](const std::string& arguments, const std::string& expected) {
    const Ran bad = program(folder, "calibrate " + arguments);
    INFO(bad.err);
    CHECK(bad.exit_status == 2);
    CHECK(bad.err.find(expected) != std::string::npos);
  };
  refused("a.json b.json", "--link-rate: got nothing; expected the platform's rate");
  refused("a.json b.json --link-rate 100Mbps",
          "--link-rate: got 100Mbps; expected at least the rate in a.json");
  refused("a.json --link-rate 1ms", "--link-rate: got \"1ms\"");
  refused("a.json --link-rate 1Gbps --terms bandwidth_efficiency",
          "got these options with reports of iperf3");
  json failed = json::parse(real);
  failed["error"] = "unable to connect";
  write_all(folder / "f.json", failed.dump());
  refused("a.json f.json --link-rate 1Gbps", "f.json:1: iperf3: got unable to connect");
}

TEST_CASE(
    "reports of iperf3 with 1, 4 and 16 connections: the window of the first two, the efficiency of the "
    "last") {
  const Folder folder;
  const std::string real = read_all(source_dir() + "/tests/experiments/data/iperf3/one-stream.json");
  const auto report = [&](const std::string& name, int streams, double megabits_per_s) {
    json one = json::parse(real);
    one["start"]["test_start"]["num_streams"] = streams;
    one["end"]["sum_received"]["bits_per_second"] = megabits_per_s * 1e6;
    write_all(folder / name, one.dump());
  };
  // A window of 6 MiB over 150 ms: 335.5 Mbit/s a connection. The link of 10 Gbit/s leaves 4.7.
  report("p1.json", 1, 335.54432);
  report("p4.json", 4, 4 * 335.54432);
  report("p16.json", 16, 4700);
  const std::string link = " --link-rate 10Gbps --round-trip 150ms --output ";
  const Ran ran = program(folder, "calibrate p1.json p4.json p16.json" + link + "-");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json answer = json::parse(ran.out);
  CHECK(term(answer, "bandwidth_efficiency")["value"].get<double>() == doctest::Approx(0.47).epsilon(1e-4));
  CHECK(term(answer, "tcp_window")["value"].get<double>() == doctest::Approx(6291456).epsilon(1e-4));
  // What it writes, simulate reads.
  REQUIRE(program(folder, "calibrate p1.json p4.json p16.json" + link + "fit.json").exit_status == 0);
  const Ran used =
      program(folder, "simulate " + kTwoSites + " --calibration fit.json --set compute.step_time=1s");
  CHECK_MESSAGE(used.exit_status == 0, used.err);
  // The buffers of the measured hosts allowed the window, and those of an ordinary host do not limit it.
  const std::string table =
      program(folder, "calibrate p1.json p4.json p16.json --link-rate 10Gbps --round-trip 150ms").out;
  CHECK(has(table, "host = \"linux\"\n"));
  CHECK(has(table, "send_buffer = \"94371"));
  CHECK(has(table, "receive_buffer = \"125829"));
  // Without a transfer that fills the link there is only the window.
  const json few = json::parse(program(folder, "calibrate p1.json p4.json" + link + "-").out);
  CHECK(term(few, "bandwidth_efficiency")["supported"] == false);
  CHECK(term(few, "tcp_window")["value"].get<double>() == doctest::Approx(6291456).epsilon(1e-4));
  // Rates that no window and no share of the link explain.
  report("q1.json", 1, 5000);
  report("q16.json", 16, 300);
  const Ran bad = program(folder, "calibrate q1.json q16.json p4.json" + link + "-");
  CHECK(bad.exit_status == 1);
  CHECK_MESSAGE(bad.err.find("the data do not support a fit: the best one is off by") != std::string::npos,
                bad.err);
  // One transfer that is 2 % slower than its windows is no evidence of a full link.
  report("p16.json", 16, 0.98 * 16 * 335.54432);
  const json noisy = json::parse(program(folder, "calibrate p1.json p4.json p16.json" + link + "-").out);
  CHECK(term(noisy, "bandwidth_efficiency")["supported"] == false);
  // With as many connections in each, windows and the link cannot be told apart.
  report("r1.json", 1, 150);
  report("r2.json", 1, 151);
  const Ran alike = program(folder, "calibrate r1.json r2.json" + link + "-");
  CHECK(alike.exit_status == 1);
  CHECK_MESSAGE(has(alike.err, "all transfers have as many connections for each round trip"), alike.err);
}

TEST_CASE("outputs of iperf3 and of other programs that are not read are named") {
  const Folder folder;
  const auto said = [&](const std::string& text) {
    write_all(folder / "x.json", text);
    const Ran ran = program(folder, "calibrate x.json --link-rate 1Gbps");
    CHECK(ran.exit_status == 2);
    CHECK_MESSAGE(ran.err.find("expected one report of one transfer in each file, as -J writes it") !=
                      std::string::npos,
                  ran.err);
    return ran.err;
  };
  const std::string real = read_all(source_dir() + "/tests/experiments/data/iperf3/one-stream.json");
  CHECK(said("{\"event\":\"start\",\"data\":{}}\n{\"event\":\"end\",\"data\":{}}\n").find("--json-stream") !=
        std::string::npos);
  CHECK(said("[ ID] Interval Transfer Bitrate\n").find("iperf3's text for people") != std::string::npos);
  CHECK(said(real + "\n" + real).find("several reports in one file") != std::string::npos);
  CHECK(said("# size count type redop root time algbw busbw\n").find("nccl-tests") != std::string::npos);
  CHECK(said("PING 10.0.0.2\nrtt min/avg/max/mdev = 1/2/3/4 ms\n").find("the output of ping") !=
        std::string::npos);
}
