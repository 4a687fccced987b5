// Tests of reports that carry their scenario, and of `fomoe validate` on them. A run is "measured" here by
// simulating it with network terms that its scenario does not have.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/results/json_values.hpp"
#include "tests/experiments/measured_by_simulation.hpp"

namespace scenario = fomoe::scenario;
namespace costmodel = fomoe::costmodel;
using namespace fomoe::tests;
using nlohmann::json;

namespace {

const std::string kShipped = source_dir() + "/experiments/scenarios/two-sites.toml";

const std::vector<std::string> kIdeal = {"network_model.host=ideal"};

scenario::ReadOptions with(const std::vector<std::string>& overrides) {
  scenario::ReadOptions options;
  options.overrides = overrides;
  return options;
}

std::string echo(const costmodel::Scenario& scenario) {
  json document = json::parse(scenario::run_report_json({}, scenario));
  document["scenario"]["compute"].erase("profile");  // the profile's key is a path
  return document["scenario"].dump();
}

Ran program(const Folder& folder, const std::string& arguments) {
  return run_in(folder.path(), "fomoe " + arguments);
}

}  // namespace

TEST_CASE("a scenario as text gives the same scenario, with every kind of file that it can name") {
  const Folder folder;
  const std::string data = source_dir() + "/experiments/data/";
  const struct {
    std::string path;
    std::vector<std::string> overrides;
  } cases[] = {
      {kShipped, {}},
      {kShipped, {"strategy.local_steps=7", "platform.sites=3", "strategy.expert_overlap=3", "name=o'clock"}},
      {source_dir() + "/experiments/scenarios/eight-regions.toml",
       {"compute.step_time=420ms", "prices.file=../data/prices-example.toml",
        "quality.file=../data/paper_exp1.csv"}},
      {kShipped, {"platform.trace=../data/link-trace-example.csv", "network_model.call_overhead=1.5ms"}},
      {kShipped, {"model.hf_config=../models/olmoe-1b-7b.json"}},
      {source_dir() + "/experiments/scenarios/tiny-training.toml", {"trainer.data=nowhere.bin"}},
  };
  for (const auto& one : cases) {
    CAPTURE(one.path);
    // hf_config and preset exclude each other.
    std::string path = one.path;
    if (!one.overrides.empty() && one.overrides[0].starts_with("model.")) {
      std::string text = read_all(path);
      text.replace(text.find("preset = \"small\""), 16, "hf_config = \"x\"");
      path = source_dir() + "/experiments/scenarios/../scenarios/two-sites.toml";
      write_all(folder / "s.toml", text);
      std::filesystem::copy(source_dir() + "/experiments/models/olmoe-1b-7b.json", folder / "x");
      const auto options = with({});
      CHECK(echo(scenario::read_scenario(scenario::scenario_source(folder / "s.toml", options), "run")) ==
            echo(scenario::read_scenario(folder / "s.toml", options)));
      continue;
    }
    const auto options = with(one.overrides);
    const scenario::ScenarioSource source = scenario::scenario_source(path, options);
    CHECK(echo(scenario::read_scenario(source, "run")) == echo(scenario::read_scenario(path, options)));
    CHECK(source.toml.find("nowhere") == std::string::npos);
  }
}

TEST_CASE(
    "mistakes in a report's scenario name the report, and a file name cannot leave the report's folder") {
  scenario::ScenarioSource source = scenario::scenario_source(kShipped, {});
  source.toml += "\n[strategi]\n";
  try {
    (void)scenario::read_scenario(source, "a/run.json");
    FAIL("it was read");
  } catch (const fomoe::FileError& error) {
    CHECK(std::string(error.what()).starts_with("a/run.json/scenario.toml:"));
  }
  source = scenario::scenario_source(kShipped, {});
  source.files["../evil"] = "x";
  CHECK_THROWS_AS((void)scenario::read_scenario(source, "run"), fomoe::FileError);
  CHECK(!std::filesystem::exists(std::filesystem::temp_directory_path() / "evil"));
}

TEST_CASE("validate: no error where measured and predicted links are the same, and else the known error") {
  const Folder folder;
  write_measured_run(folder / "same.json", kShipped, kIdeal, {});
  write_measured_run(folder / "slower.json", kShipped, kIdeal, {"network_model.bandwidth_efficiency=0.5"});
  Ran ran = program(folder, "validate same.json slower.json --output -");
  INFO(ran.err);
  REQUIRE(ran.exit_status == 0);
  const json answer = json::parse(ran.out);
  CHECK(answer["schema"] == "fomoe.validation/1");
  for (const auto& item : answer["runs"][0]["errors"].items())
    CHECK(std::abs(item.value().get<double>()) < 1e-9);
  // At half the rate the bytes take twice as long, but the latency does not.
  const double error = answer["runs"][1]["errors"]["communication"];
  CHECK(error < -0.45);
  CHECK(error > -0.5);
  CHECK(answer["runs"][1]["errors"]["bytes"] == 0);
  CHECK(answer["groups"][0]["errors"]["communication"]["worst_run"] == "slower");
  CHECK(answer["groups"][0]["errors"]["communication"]["median"].get<double>() ==
        doctest::Approx(-error / 2));

  // With the term of the measured run the error vanishes.
  ran = program(folder, "validate slower.json --set network_model.bandwidth_efficiency=0.5 --output v.csv");
  REQUIRE(ran.exit_status == 0);
  const std::string csv = read_all(folder / "v.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 2);
  ran = program(folder,
                "validate slower.json --set network_model.bandwidth_efficiency=0.5 --limit wall_clock=1e-6");
  CHECK(ran.exit_status == 0);
  CHECK(ran.out.find("Bytes sent: exactly as predicted in all 1 runs.") != std::string::npos);
}

TEST_CASE("validate: an exceeded limit gives exit status 1, and the message names the limit and the run") {
  const Folder folder;
  write_measured_run(folder / "same.json", kShipped, kIdeal, {});
  write_measured_run(folder / "slower.json", kShipped, kIdeal, {"network_model.bandwidth_efficiency=0.5"});
  const Ran worst = program(folder, "validate same.json slower.json --limit communication=0.4");
  CHECK(worst.exit_status == 1);
  CHECK(worst.err.find("worst error of communication: ") != std::string::npos);
  CHECK(worst.err.find("more than the limit of 40.00 % (slower)") != std::string::npos);
  CHECK(!worst.out.empty());  // the tables are printed in both cases
  CHECK(program(folder, "validate same.json slower.json --limit median.communication=0.4").exit_status == 0);
  for (const char* bad : {"wall_clock=x", "wall_clock", "wallclock=0.1", "mean.wall_clock=0.1", "bytes=-1"})
    CHECK(program(folder, std::string("validate same.json --limit ") + bad).exit_status == 2);
}

TEST_CASE("validate: errors of the first round and of the later ones, if the report lists its rounds") {
  const Folder folder;
  write_measured_run(folder / "run.json", kShipped, {}, {});
  json report = json::parse(read_all(folder / "run.json"));
  const auto rounds = report["round"]["count"].get<std::size_t>();
  REQUIRE(report["round_durations_s"].size() == rounds);
  report["round_durations_s"][0] = 2 * report["round_durations_s"][0].get<double>();
  write_all(folder / "late.json", report.dump());
  const Ran ran = program(folder, "validate late.json --limit later_rounds=1e-9 --output -");
  INFO(ran.err);
  REQUIRE(ran.exit_status == 0);
  const json errors = json::parse(ran.out)["runs"][0]["errors"];
  CHECK(errors["first_round"].get<double>() == doctest::Approx(-0.5));
  CHECK(program(folder, "validate late.json --limit first_round=0.4").exit_status == 1);

  report.erase("round_durations_s");
  report["run"]["id"] = "0123456789abcdef";
  write_all(folder / "unlisted.json", report.dump());
  const Ran unlisted = program(folder, "validate unlisted.json --limit later_rounds=0.1");
  CHECK(unlisted.exit_status == 1);
  CHECK(unlisted.err.find("later_rounds: no run lists its rounds") != std::string::npos);
  CHECK(program(folder, "validate unlisted.json late.json --limit later_rounds=0.1").exit_status == 0);
  report["round_durations_s"] = "many";
  write_all(folder / "wrong.json", report.dump());
  const Ran wrong = program(folder, "validate wrong.json");
  CHECK(wrong.exit_status == 2);
  CHECK(wrong.err.find("round_durations_s: got \"many\"; expected a list of seconds") != std::string::npos);
}

TEST_CASE("validate refuses incomplete or simulated runs, repeated runs, and keys of the run itself") {
  const Folder folder;
  write_measured_run(folder / "run.json", kShipped, {}, {});
  const auto said = [&](const std::string& arguments) {
    const Ran ran = program(folder, "validate " + arguments);
    CHECK(ran.exit_status == 2);
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    return ran.err;
  };
  REQUIRE(program(folder, "simulate '" + kShipped + "' --output simulated.json").exit_status == 0);
  CHECK(said("simulated.json").find("executor: got \"simulated\"; expected \"measured\"") !=
        std::string::npos);
  write_all(folder / "other.json", "{\"schema\": \"fomoe.planner/1\"}");
  CHECK(said("other.json").find("expected \"fomoe.run/1\" or \"fomoe.wan/1\"") != std::string::npos);
  json report = json::parse(read_all(folder / "run.json"));
  write_all(folder / "wan.json", json{{"schema", "fomoe.wan/1"}, {"run_report", report}}.dump());
  CHECK(said("run.json wan.json").find(" twice; expected each run once") != std::string::npos);
  CHECK(program(folder, "validate wan.json").exit_status == 0);
  report["wall_clock_s"] = "long";
  write_all(folder / "text.json", report.dump());
  CHECK(said("text.json").find("wall_clock_s: got \"long\"; expected a number") != std::string::npos);
  CHECK(said("run.json --set strategy.local_steps=3").find("expected a key of network_model") !=
        std::string::npos);
  CHECK(said("").find("expected at least one report, got 0") != std::string::npos);
}

TEST_CASE("a run whose sites worked in turn tells compute and bytes, and nothing about transfers") {
  const Folder folder;
  write_measured_run(folder / "run.json", kShipped, {}, {});
  json report = json::parse(read_all(folder / "run.json"));
  report["run"]["in_turn"] = true;
  report["round"]["compute_s"] = report["round"]["compute_s"].get<double>() / 2;
  report["wall_clock_s"] = 9 * report["wall_clock_s"].get<double>();
  write_all(folder / "turn.json", report.dump());
  const Ran ran = program(folder, "validate turn.json --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json run = json::parse(ran.out)["runs"][0];
  CHECK(run["in_turn"] == true);
  CHECK(run["errors"]["compute"].get<double>() == doctest::Approx(1));
  CHECK(run["errors"]["bytes"] == 0);
  for (const char* what : {"wall_clock", "communication", "synchronization", "utilization", "later_rounds"})
    CHECK(run["errors"][what].is_null());
  const Ran text = program(folder, "validate turn.json");
  CHECK(text.exit_status == 0);
  CHECK(text.out.find("The sites of 1 of 1 runs worked in turn in one process") != std::string::npos);
  CHECK(text.out.find("+100.0 %") != std::string::npos);
  // Terms of the network cannot be fitted to it.
  const Ran fitted = program(folder, "calibrate turn.json");
  CHECK(fitted.exit_status == 2);
  CHECK(fitted.err.find("run.in_turn: got true") != std::string::npos);
}

TEST_CASE("validate refuses a run to which the network model was fitted") {
  const Folder folder;
  write_measured_run(folder / "run.json", kShipped, kIdeal, {});
  const std::string id = json::parse(read_all(folder / "run.json"))["run"]["id"];
  write_all(folder / "fitted.toml",
            "[network_model]\nbandwidth_efficiency = 0.9\n[calibration]\nruns = [\"" + id + "\"]\n");
  const Ran refused = program(folder, "validate run.json --network-model fitted.toml");
  CHECK(refused.exit_status == 2);
  CHECK(refused.err.find("which fitted.toml was fitted to") != std::string::npos);
  write_all(folder / "other.toml",
            "[network_model]\nbandwidth_efficiency = 0.9\n[calibration]\nruns = [\"0123456789abcdef\"]\n");
  const Ran ran = program(folder, "validate run.json --network-model other.toml");
  CHECK(ran.exit_status == 0);
  CHECK(ran.out.find("Network: bandwidth_efficiency 0.9.") != std::string::npos);
  write_all(folder / "wrong.toml", "[network_model]\nefficiency = 0.9\n");
  CHECK(program(folder, "validate run.json --network-model wrong.toml").exit_status == 2);
}

TEST_CASE("validate predicts with the congestion control and the buffers that the kernel reported") {
  const Folder folder;
  write_measured_run(folder / "run.json", kShipped, {"platform.latency=100ms"}, {});
  json report = json::parse(read_all(folder / "run.json"));
  const auto predicted_s = [&](const std::string& options) {
    write_all(folder / "seen.json", report.dump());
    const Ran ran = program(folder, "validate seen.json --output - " + options);
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    return json::parse(ran.out)["runs"][0]["predicted"]["wall_clock_s"].get<double>();
  };
  const double unknown_s = predicted_s("");
  report["run"]["connections"] = {{"send_buffer_bytes", 1e6},
                                  {"receive_buffer_bytes", 6e6},
                                  {"list",
                                   {{{"congestion_control", "bbr"},
                                     {"segment_bytes", 1448},
                                     {"least_round_trip_s", 0.2},
                                     {"round_trip_s", 0.21},
                                     {"retransmits", 0},
                                     {"sent_bytes", 1e9},
                                     {"received_bytes", 1e9}}}}};
  const double seen_s = predicted_s("");
  CHECK(seen_s > 1.2 * unknown_s);  // a quarter of the usual send buffer
  CHECK(seen_s ==
        predicted_s("--set network_model.congestion_control=bbr --set network_model.send_buffer=1MB "
                    "--set network_model.receive_buffer=6MB"));
  // What --set gives comes before what the kernel said, and an ideal host has no connections.
  CHECK(predicted_s("--set network_model.send_buffer=4MiB --set network_model.receive_buffer=6MiB --set "
                    "network_model.congestion_control=cubic") == doctest::Approx(unknown_s));
  const double ideal_s = predicted_s("--set network_model.host=ideal");
  report["run"].erase("connections");
  CHECK(ideal_s == predicted_s("--set network_model.host=ideal"));
}
