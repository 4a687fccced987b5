// Tests of the ways in which a scenario reaches the program, and of messages about several mistakes.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {

const std::string kToml =
    "[model]\npreset = \"small\"\n[workload]\ntokens = 1e8\nglobal_batch_sequences = 64\n"
    "[strategy]\nmethod = \"diloco\"\nlocal_steps = 8\n[compute]\nstep_time = \"1s\"\n"
    "[platform]\nsites = 3\nbandwidth = \"1Gbps\"\nlatency = \"10ms\"\n";
const std::string kJson =
    "{\n  \"model\": {\"preset\": \"small\"},\n  \"workload\": {\"tokens\": 100000000, "
    "\"global_batch_sequences\": 64},\n  \"strategy\": {\n    \"method\": \"diloco\",\n    \"local_steps\": "
    "8},\n"
    "  \"compute\": {\"step_time\": \"1s\"},\n"
    "  \"platform\": {\"sites\": 3, \"bandwidth\": \"1Gbps\", \"latency\": \"10ms\"}\n}\n";

double wall_clock_s(const Ran& ran) {
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return json::parse(ran.out)["wall_clock_s"];
}

}  // namespace

TEST_CASE("a scenario in JSON, from stdin or from another folder gives the answer of the TOML file") {
  const Folder folder;
  write_all(folder / "s.toml", kToml);
  write_all(folder / "s.json", kJson);
  const double expected_s = wall_clock_s(run_in(folder.path(), "fomoe simulate s.toml --output -"));
  CHECK(wall_clock_s(run_in(folder.path(), "fomoe simulate s.json --output -")) == expected_s);
  CHECK(wall_clock_s(run_in(folder.path(), "fomoe simulate - --output - < s.toml")) == expected_s);
  CHECK(wall_clock_s(run_in(folder.path(), "fomoe simulate - --output - < s.json")) == expected_s);
  CHECK(wall_clock_s(run_in("/", "fomoe simulate " + (folder / "s.toml") + " --output -")) == expected_s);
}

TEST_CASE("mistakes in JSON have the line of the key") {
  const Folder folder;
  std::string text = kJson;
  text.replace(text.find("\"local_steps\": 8"), 16, "\"local_steps\": -8");
  write_all(folder / "s.json", text);
  const Ran ran = run_in(folder.path(), "fomoe simulate s.json");
  CHECK(ran.exit_status == 2);
  CHECK(ran.err.starts_with("s.json:6: strategy.local_steps: got -8; expected a whole number"));
  write_all(folder / "t.json", "{\n\"model\": {\n");
  CHECK(
      run_in(folder.path(), "fomoe simulate t.json").err.starts_with("t.json:3: JSON: got text that is not"));
  write_all(folder / "u.json", "{\"model\":\n {\"preset\": null}}");
  CHECK(run_in(folder.path(), "fomoe simulate u.json").err.starts_with("u.json:2: model.preset: got null"));
}

TEST_CASE("the report of a measured run stands for its scenario") {
  const std::string report = source_dir() + "/experiments/validation/runs/diloco-four-medium-k8.json";
  const Ran ran = run_in("/", "fomoe simulate " + report + " --set strategy.local_steps=4 --output -");
  CHECK(ran.exit_status == 0);
  const auto answer = nlohmann::json::parse(ran.out);
  CHECK(answer["scenario"]["model"]["name"] == "custom");
  CHECK(answer["scenario"]["strategy"]["local_steps"] == 4);
  const Folder folder;
  write_all(folder / "simulated.json", ran.out);
  const Ran simulated = run_in(folder.path(), "fomoe simulate simulated.json");
  CHECK(simulated.exit_status == 2);
  CHECK(simulated.err.starts_with("simulated.json:1: run report: got a report without the scenario's text"));
  write_all(folder / "files.json",
            R"({"schema": "fomoe.run/1", "run": {"scenario_toml": "a = 1", "files": {"p.json": ""}}})");
  CHECK(run_in(folder.path(), "fomoe simulate files.json")
            .err.starts_with("files.json:1: run report: got a run whose scenario names files"));
}

TEST_CASE("all mistakes of a scenario are told at once, in the order of its lines") {
  const Folder folder;
  write_all(
      folder / "s.toml",
      "[model]\npreset = \"smal\"\n[workload]\ntokens = 1e40\nglobal_batch_sequences = 64\n"
      "[strategy]\nmethod = \"dilocco\"\nlocal_stepps = 8\nlocal_steps = 0.5\n[compute]\nstep_time = 3\n"
      "[platform]\nsites = 3\nbandwidth = \"1Gbs\"\nlatency = \"10ms\"\n");
  const Ran ran = run_in(folder.path(), "fomoe simulate s.toml --set network_model.loss_rate=2");
  CHECK(ran.exit_status == 2);
  const char* expected[] = {"--set network_model.loss_rate=2: network_model.loss_rate: got 2",
                            "s.toml:2: model.preset: got \"smal\"",
                            "s.toml:4: workload.tokens: got 1e+40",
                            "s.toml:7: strategy.method: got \"dilocco\"",
                            "s.toml:8: strategy.local_stepps: got an unknown key",
                            "s.toml:9: strategy.local_steps: got 0.5",
                            "s.toml:11: compute.step_time: got 3 (no unit)",
                            "s.toml:14: platform.bandwidth: got \"1Gbs\""};
  std::size_t at = 0;
  for (const char* message : expected) {
    CAPTURE(message);
    const std::size_t found = ran.err.find(message, at);
    CHECK_MESSAGE(found != std::string::npos, ran.err);
    if (found != std::string::npos) at = found;
  }
  CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 8);

  // Tables whose keys are valid one by one are checked as well, each by itself.
  write_all(folder / "t.toml",
            "[model]\npreset = \"small\"\n[workload]\ntokens = 1e8\nglobal_batch_sequences = 64\n"
            "[strategy]\nmethod = \"diloco\"\n[compute]\nstep_time = \"1s\"\nmfu = 0.4\n"
            "[platform]\nsites = 3\nbandwidth = \"1Gbps\"\nuplink = \"1Gbps\"\ndownlink = \"1Gbps\"\nlatency "
            "= \"10ms\"\n");
  const Ran two = run_in(folder.path(), "fomoe simulate t.toml");
  CHECK(two.err.find("t.toml:10: compute.mfu: got mfu together with step_time") != std::string::npos);
  CHECK(two.err.find("t.toml:13: platform.bandwidth: got bandwidth together with uplink") !=
        std::string::npos);
}

TEST_CASE("a list of sites or paths has tables, or nothing") {
  for (const std::string key : {"site", "path"}) {
    CAPTURE(key);
    const std::string command = "fomoe cost experiments/scenarios/two-sites.toml --set '" + key + "=";
    const Ran wrong = run(command + "[1]'");
    CHECK(wrong.exit_status == 2);
    CHECK_MESSAGE(
        has(wrong.err, key + ": got an array; expected a list of tables; for example [[" + key + "]]"),
        wrong.err);
    CHECK(run(command + "[]'").out == run("fomoe cost experiments/scenarios/two-sites.toml").out);
  }
}

TEST_CASE("the example of a message can be pasted into a shell, and is right in this scenario") {
  const std::string command = "fomoe cost experiments/scenarios/four-regions.toml ";
  const auto accepts_example = [&](const std::string& mistake) {
    const Ran ran = run(command + mistake);
    REQUIRE(ran.exit_status == 2);
    const std::string begin = "for example ";
    const std::size_t at = ran.err.find(begin);
    REQUIRE_MESSAGE(at != std::string::npos, ran.err);
    const std::string rest = ran.err.substr(at + begin.size());
    return run(command + rest.substr(0, rest.find_first_of(";\n"))).err;
  };
  CHECK(accepts_example("--set traffic.checkpoint_site=zzz") == "");
  CHECK(accepts_example("--set calibration.terms=zzz").find("got [latency_factor]") == std::string::npos);
}

TEST_CASE("names of files are checked at the key that names them") {
  const Folder folder;
  const auto err = [&](const std::string& line) {
    write_all(folder / "s.toml", kToml + line + '\n');
    const Ran ran = run_in(folder.path(), "fomoe simulate s.toml");
    CHECK(ran.exit_status == 2);
    return ran.err;
  };
  CHECK(err("trace = \"absent.csv\"")
            .starts_with("s.toml:15: platform.trace: got \"absent.csv\" (no such file"));
  CHECK(err("trace = \".\"").starts_with("s.toml:15: platform.trace: got \".\" ("));
  CHECK(err("[prices]\nfile = \"absent.toml\"").starts_with("s.toml:16: prices.file: got \"absent.toml\""));
  CHECK(err("[quality]\nfile = \"absent.csv\"").starts_with("s.toml:16: quality.file: got \"absent.csv\""));
  // A name that the system refuses is a wrong input, not a failure.
  const std::string name(5000, 'x');
  CHECK(err("trace = \"" + name + "\"").starts_with("s.toml:15: platform.trace: got \"xxx"));
  const Ran path = run_in(folder.path(), "fomoe simulate " + name + ".toml");
  CHECK(path.exit_status == 2);
  CHECK(path.err.size() < 1000);
  CHECK(run_in(folder.path(), "fomoe simulate .").err.starts_with(".:1: scenario: got a folder"));
}

TEST_CASE("--unset removes a key of the file, and refuses one that is not there") {
  const Folder folder;
  write_all(folder / "s.toml", kToml + "[network_model]\ntcp_window = \"64KiB\"\n");
  const double slow_s = wall_clock_s(run_in(folder.path(), "fomoe simulate s.toml --output -"));
  const double fast_s = wall_clock_s(
      run_in(folder.path(), "fomoe simulate s.toml --unset network_model.tcp_window --output -"));
  CHECK(fast_s < slow_s);
  write_all(folder / "t.toml", kToml);
  CHECK(wall_clock_s(run_in(folder.path(), "fomoe simulate t.toml --output -")) == fast_s);
  const Ran ran = run_in(folder.path(), "fomoe simulate t.toml --unset network_model.tcp_window");
  CHECK(ran.exit_status == 2);
  CHECK(ran.err.starts_with("--unset network_model.tcp_window: network_model.tcp_window: got no such key"));
}

TEST_CASE("sites by pattern, and a trace that names links of sites that are not used") {
  const Folder folder;
  const std::string cloud = source_dir() + "/platforms/cloud-regions.toml";
  std::string text = kToml.substr(0, kToml.find("[platform]"));
  write_all(folder / "day.csv",
            "time,link,bandwidth,latency\n0s,uplink of *,50%,\n6h,uplink of gcp:*,100%,\n"
            "12h,path aws:us-east-1 to azure:eastus,,200%\n");
  write_all(folder / "s.toml", text + "[platform]\nfile = \"" + cloud +
                                   "\"\nuse_sites = \"aws:us-*, gcp:europe-west4-a\"\ntrace = \"day.csv\"\n"
                                   "trace_period = \"24h\"\n[network_model]\nhost = \"ideal\"\n");
  const Ran ran = run_in(folder.path(), "fomoe simulate s.toml --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json run = json::parse(ran.out);
  CHECK(run["sites"].size() == 5);  // us-east-1, us-east-2, us-west-1, us-west-2 and one of Google's
  CHECK(run["sites"][4]["name"] == "gcp:europe-west4-a");
  const json without = json::parse(run_in(folder.path(),
                                          "fomoe simulate s.toml --unset platform.trace --unset "
                                          "platform.trace_period --output -")
                                       .out);
  CHECK(run["wall_clock_s"].get<double>() > without["wall_clock_s"].get<double>());
  const Ran none = run_in(folder.path(), "fomoe simulate s.toml --set 'platform.use_sites=ibm:*'");
  CHECK(none.exit_status == 2);
  CHECK(none.err.find("expected names of the file's sites, or patterns that match them") !=
        std::string::npos);
  // As in a file, the number of sites and their names contradict each other.
  const Ran both = run_in(folder.path(), "fomoe simulate s.toml --set platform.sites=4");
  CHECK(both.exit_status == 2);
  CHECK(both.err.find("sites together with use_sites") != std::string::npos);
}

TEST_CASE("a trace's rates belong to one gateway machine, like the platform's own") {
  const Folder folder;
  write_all(folder / "s.toml", kToml);
  write_all(folder / "t.csv", "time,link,bandwidth,latency\n0s,uplink of *,500Mbps,\n");
  write_all(folder / "u.csv", "time,link,bandwidth,latency\n0s,uplink of *,2Gbps,\n");
  const std::string simulate = "fomoe simulate s.toml --output - --set platform.trace=";
  const double four_s = wall_clock_s(
      run_in(folder.path(), simulate + "t.csv --set platform.gateways=4 --set platform.rates_of=machine"));
  // Four machines also have four connections where one has one.
  CHECK(four_s == wall_clock_s(run_in(folder.path(), simulate + "u.csv --set platform.gateways=1 --set "
                                                                "platform.downlink=4Gbps --set "
                                                                "platform.uplink=4Gbps --set "
                                                                "network_model.streams=4")));
}

TEST_CASE("fragments and overlap have the method's defaults, unless the scenario gives them") {
  const Folder folder;
  write_all(folder / "s.toml", kToml);
  const auto strategy = [&](const std::string& settings) {
    const Ran ran = run_in(folder.path(), "fomoe simulate s.toml --output - " + settings);
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    return json::parse(ran.out)["scenario"]["strategy"];
  };
  const json streaming = strategy("--set strategy.method=streaming_diloco");  // small has 4 layers
  CHECK(streaming["fragments"] == 2);
  CHECK(streaming["overlap_steps"] == 1);
  CHECK(streaming["payload_dtype"] == "int4");
  const json given = strategy(
      "--set strategy.method=streaming_diloco --set strategy.fragments=2 --set strategy.overlap_steps=0 "
      "--set "
      "strategy.payload_dtype=bf16");
  CHECK(given["fragments"] == 2);
  CHECK(given["overlap_steps"] == 0);
  CHECK(given["payload_dtype"] == "bf16");
  // 101 MB of layers in bf16, and the embedding in the last bucket.
  CHECK(strategy("--set strategy.method=ddp --set model.preset=medium")["fragments"] == 4);
  CHECK(strategy("")["fragments"] == 1);
  // In a sweep, short rounds have fewer fragments.
  const Ran sweep =
      run_in(folder.path(),
             "fomoe sweep s.toml --engine closed-form --set strategy.method=streaming_diloco --vary "
             "strategy.local_steps=2,8 --output -");
  REQUIRE_MESSAGE(sweep.exit_status == 0, sweep.err);
  const json all_rows = json::parse(sweep.out)["rows"];  // the loop would not keep the document alive
  for (const json& row : all_rows) {
    const Ran one = run_in(folder.path(),
                           "fomoe simulate s.toml --engine closed-form --set strategy.method="
                           "streaming_diloco --output - --set strategy.local_steps=" +
                               row["strategy.local_steps"].dump());
    CHECK(row["wall_clock_s"].get<double>() == doctest::Approx(wall_clock_s(one)).epsilon(1e-9));
  }
}

TEST_CASE("of two keys of which only one is allowed, an option names the other one to take away") {
  const Folder folder;
  write_all(folder / "s.toml",
            kToml + "[failures]\nlink_mtbf = \"9d\"\nlink_repair = \"1h\"\ncheckpoint_cost = \"20s\"\n");
  const std::string command =
      "fomoe simulate s.toml --engine closed-form --set failures.links_stay_dead=true ";
  const Ran ran = run_in(folder.path(), command);
  CHECK(ran.exit_status == 2);
  const std::string example = "--unset failures.link_repair";
  CHECK_MESSAGE(has(ran.err, "expected only one of them; for example " + example), ran.err);
  CHECK(run_in(folder.path(), command + example).exit_status == 0);
}

TEST_CASE("limits and dates: each limit once, and a day of the calendar") {
  const std::string command = "fomoe simulate experiments/scenarios/two-sites.toml --engine closed-form ";
  const Ran twice = run(command + "--within time=1.5min,time=3min");
  CHECK(twice.exit_status == 2);
  CHECK_MESSAGE(has(twice.err, "expected each limit once"), twice.err);
  for (const char* date : {"2026-02-30", "01/02/2026", "2026-1-5", "2026-01-15x"}) {
    CAPTURE(date);
    const Ran ran = run(command + "--set prices.gpu_hour=2USD --set prices.as_of=" + date);
    CHECK(ran.exit_status == 2);
    CHECK_MESSAGE(has(ran.err, "expected a day of the calendar as year-month-day"), ran.err);
  }
  CHECK(run(command + "--set prices.gpu_hour=2USD --set prices.as_of=2028-02-29").exit_status == 0);
}
