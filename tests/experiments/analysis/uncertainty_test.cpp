// Tests of the uncertainty in an answer, through the program: its inputs are the known spreads of the
// scenario's inputs.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;
using nlohmann::json;

json run_json(const std::string& more) {
  const Ran ran =
      run_in(source_dir(), "fomoe simulate " + kTwoSites + " --sensitivity none --output - " + more);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return json::parse(ran.out);
}

json fitted(const std::string& name, double low, double value, double high) {
  return {{"name", name}, {"supported", true}, {"value", value}, {"low95", low}, {"high95", high}};
}

std::string calibration(const Folder& folder, const json& terms) {
  std::string path = folder / "calibration.json";
  write_all(path,
            json({{"schema", "fomoe.calibration/1"}, {"terms", terms}, {"runs", json::array()}}).dump());
  return path;
}

const json kTerms = {fitted("latency_factor", 1.8, 2, 2.3),
                     fitted("call_overhead", 0.001, 0.002, 0.004),
                     {{"name", "payload_rate"}, {"supported", false}, {"why_not", "too few data"}}};

}  // namespace

TEST_CASE("uncertainty: inputs without a known spread are not listed, in JSON and in the text output") {
  const json run = run_json("");
  CHECK(run["uncertainty"]["inputs"].empty());
  CHECK_FALSE(run["uncertainty"].contains("wall_clock_low_s"));
  const Ran text = run_in(source_dir(), "fomoe simulate " + kTwoSites);
  CHECK(text.out.find("in quadrature") == std::string::npos);
}

TEST_CASE(
    "uncertainty: calibrated terms replace the scenario's, and the ends of their intervals are simulated") {
  const Folder folder;
  const std::string option =
      "--set network_model.latency_factor=7 --calibration " + calibration(folder, kTerms);
  const json run = run_json(option);
  const auto wall_clock_s = [](const std::string& factor, const std::string& overhead) {
    return run_json("--set network_model.latency_factor=" + factor +
                    " --set network_model.call_overhead=" + overhead)["wall_clock_s"]
        .get<double>();
  };
  const double answer_s = run["wall_clock_s"];
  CHECK(answer_s == wall_clock_s("2", "2ms"));
  const json& inputs = run["uncertainty"]["inputs"];
  REQUIRE(inputs.size() == 2);
  CHECK(inputs[0]["input"] == "network_model.latency_factor");
  CHECK(inputs[0]["low"] == 1.8);
  CHECK(inputs[0]["wall_clock_low_s"].get<double>() == wall_clock_s("1.8", "2ms"));
  CHECK(inputs[0]["wall_clock_high_s"].get<double>() == wall_clock_s("2.3", "2ms"));
  CHECK(inputs[1]["unit"] == "s");
  CHECK(inputs[1]["wall_clock_low_s"].get<double>() == wall_clock_s("2", "1ms"));
  CHECK(inputs[1]["wall_clock_high_s"].get<double>() == wall_clock_s("2", "4ms"));
  CHECK(inputs[1]["executor"] == "simulated");
  const double above = std::hypot(inputs[0]["wall_clock_high_s"].get<double>() - answer_s,
                                  inputs[1]["wall_clock_high_s"].get<double>() - answer_s);
  CHECK(run["uncertainty"]["wall_clock_high_s"].get<double>() ==
        doctest::Approx(answer_s + above).epsilon(1e-12));
  // The closed form ignores the cost of a call. The input is left out, since "no effect" would be wrong.
  CHECK(run_json(option + " --engine closed-form")["uncertainty"]["inputs"].size() == 1);
}

TEST_CASE("uncertainty in the text output: each input, its source, and all together") {
  const Folder folder;
  const std::string path = calibration(folder, kTerms);
  const Ran ran = run_in(source_dir(), "fomoe simulate " + kTwoSites +
                                           " --set compute.step_variation=0.1 --calibration " + path);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  for (const std::string& words :
       {std::string("\nstep time variation"), std::string("\nnetwork_model.latency_factor"),
        "fitted: " + path + " (simulated)", std::string("\nall inputs, in quadrature")})
    CHECK_MESSAGE(ran.out.find(words) != std::string::npos, ran.out);
}

TEST_CASE("uncertainty: the spread over seeds is the one predicted from the steps' variation") {
  // One site waits for no other, so that the predicted spread is exact. The standard deviation of twenty
  // seeds of 191 steps has a relative error of 1 ÷ √(2 · 19) = 16 %. The tolerance is three times that.
  const json run = run_json(
      "--set platform.sites=1 --set strategy.expert_overlap=1 --set compute.step_variation=0.3 --rounds all "
      "--replicas 20");
  const json& input = run["uncertainty"]["inputs"][0];
  const double said_s =
      (input["wall_clock_high_s"].get<double>() - input["wall_clock_low_s"].get<double>()) / 2 / 1.96;
  const json& mean = run["replicas"]["wall_clock_s"]["mean_95_percent"];  // ± t·s ÷ √20, t = 2.093
  const double found_s = (mean[1].get<double>() - mean[0].get<double>()) / 2 * std::sqrt(20.0) / 2.093;
  CHECK(found_s == doctest::Approx(said_s).epsilon(0.48));
}

TEST_CASE("mistakes in a calibration file") {
  const Folder folder;
  const auto refused = [&](const json& terms, const std::string& words) {
    const Ran ran =
        run_in(source_dir(), "fomoe simulate " + kTwoSites + " --calibration " + calibration(folder, terms));
    CHECK(ran.exit_status == 2);
    CHECK(ran.out.empty());
    CHECK_MESSAGE(ran.err.find(words) != std::string::npos, ran.err);
  };
  refused(json::array(), "terms: got an empty array; expected an array with at least one entry");
  refused(json::array({fitted("latency_facto", 1, 2, 3)}),
          "terms[0].name: got \"latency_facto\"; expected a number of [network_model]");
  refused(json::array({fitted("latency_factor", 2.1, 2, 3)}),
          "terms[0].value: got 2; expected a value between low95 and high95, 2.1 and 3");
  refused(json::array({fitted("bandwidth_efficiency", 0.9, 0.95, 1.2)}),
          "network_model.bandwidth_efficiency=1.2");
}

TEST_CASE("calibrated terms are marked as calibrated, with their file: in JSON, text and the report") {
  const Folder folder;
  const std::string path = calibration(folder, kTerms);
  const json run = run_json("--calibration " + path + " --set network_model.jitter=5ms");
  int calibrated = 0;
  for (const json& entry : run["provenance"]) {
    const bool fitted_term = entry["detail"].get<std::string>().ends_with("; fitted: " + path);
    CHECK(fitted_term == (entry["origin"] == "calibrated"));
    if (fitted_term) ++calibrated;
    if (entry["detail"].get<std::string>().starts_with("jitter")) CHECK(entry["origin"] == "assumed");
  }
  CHECK(calibrated == 2);  // latency_factor and call_overhead, but not payload_rate, which was not fitted
  write_all(folder / "run.json", run.dump());
  const Ran report = run_in(folder.path(), "fomoe report run.json --output r.html");
  REQUIRE_MESSAGE(report.exit_status == 0, report.err);
  CHECK(read_all(folder / "r.html").find("calibrated (2)") != std::string::npos);
  const Ran words = run_in(source_dir(), "fomoe simulate " + kTwoSites + " --calibration " + path);
  CHECK(words.out.find("\n  calibrated  network model") != std::string::npos);
}

TEST_CASE("the TOML that fomoe calibrate writes can be pasted into a scenario") {
  const Folder folder;
  const std::string runs = source_dir() + "/experiments/validation/runs/diloco-*-small-*.json";
  const Ran fit =
      run_in(folder.path(), "fomoe calibrate " + runs + " --terms latency_factor --output fit.toml");
  REQUIRE_MESSAGE(fit.exit_status == 0, fit.err);
  write_all(folder / "s.toml", read_all(source_dir() + "/experiments/scenarios/two-sites.toml") + '\n' +
                                   read_all(folder / "fit.toml"));
  const auto origin = [&](const std::string& more) {
    const Ran ran = run_in(folder.path(), "fomoe simulate s.toml --sensitivity none --output - " + more);
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    const json run = json::parse(ran.out);
    for (const json& entry : run["provenance"]) {
      if (entry["detail"].get<std::string>().starts_with("all latencies are multiplied by "))
        return entry["origin"].get<std::string>();
    }
    return std::string();
  };
  CHECK(origin("") == "calibrated");
  CHECK(origin("--set network_model.latency_factor=2") == "assumed");  // a value that was not fitted
}

TEST_CASE(
    "interval of the cost: its ends have the work of these ends, and the median run lies between them") {
  // Only electricity is paid, of GPUs that draw little while they wait.
  const std::string more =
      "--set workload.tokens=5e10 --set strategy.local_steps=64 --set compute.step_time=420ms --set "
      "network_model.host=ideal --set prices.gpu_hour=0USD --set prices.kwh=1USD --set energy.gpu_power=700W "
      "--set energy.idle_share=0.1 --set failures.site_mtbf=12h --set failures.checkpoint_cost=10s --set "
      "failures.checkpoint_time=6h";
  const json run = run_json(more);
  REQUIRE_MESSAGE(run["interval"].contains("cost_low"), run["interval"].dump());
  const double low = run["interval"]["cost_low"], high = run["interval"]["cost_high"];
  const double without = run["cost"]["cost_total"], median = run["goodput"]["cost_p50"];
  CHECK(median > 1.05 * without);  // repeated work draws full power
  CHECK(low < median);
  CHECK(high > median);
  CHECK(high > run["goodput"]["cost_p95"].get<double>() * 0.99);
}
