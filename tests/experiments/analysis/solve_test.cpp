// Tests of `fomoe solve`, `fomoe explain` and the sensitivity in an answer, through the program.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;
using nlohmann::json;

json json_of(const std::string& command) {
  const Ran ran = run_in(source_dir(), command + " --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return json::parse(ran.out);
}

void refused(const std::string& command, const std::string& message) {
  const Ran ran = run_in(source_dir(), command);
  CHECK(ran.exit_status == 2);
  CHECK(ran.out.empty());
  CHECK_MESSAGE(ran.err == message + "\n", ran.err);
}

}  // namespace

TEST_CASE("solve: the bandwidth for a utilisation, by hand") {
  // Without latency and with full rounds only, the utilisation is u = C/(C + B/r) for compute C and bytes B
  // in each direction, so that r = B/C · u/(1 − u). ddp sends in every step.
  const std::string scenario =
      kTwoSites + " --set strategy.method=ddp --set strategy.fragments=1 --set platform.latency=0ms";
  const double bytes = json_of("fomoe simulate " + scenario)["bytes_sent_per_site_per_round"];
  const json solved =
      json_of("fomoe solve " + scenario + " --for platform.bandwidth --target compute_utilization=0.8");
  CHECK(solved["schema"] == "fomoe.solve/1");
  const json& answer = solved["answers"][0];
  CHECK(answer["answer"] == "smallest");
  // 2e-3: bisection ends at 0.1 %, and the answer is rounded up to four digits.
  CHECK(answer["value"].get<double>() == doctest::Approx(bytes / 0.420 * 0.8 / 0.2).epsilon(2e-3));
  CHECK(answer["value"].get<double>() >= bytes / 0.420 * 0.8 / 0.2 * (1 - 1e-12));
  const std::string text = answer["text"];
  CHECK(text.substr(text.size() - 4) == "Gbps");  // the unit in the scenario
  CHECK(json_of("fomoe simulate " + scenario + " --set platform.bandwidth=" + text)["compute_utilization"] >=
        0.8);
}

TEST_CASE("solve: the answer reaches the target, and a value that is 1 % or one less does not") {
  struct Question {
    std::string scenario, key, target;
  };
  for (const Question& question :
       {Question{kTwoSites, "platform.bandwidth", "compute_utilization=0.9"},
        {kTwoSites + " --set platform.sites=4", "platform.bandwidth", "wall_clock=100s"},
        {kTwoSites, "platform.latency", "wall_clock=95s"},
        {kTwoSites, "strategy.local_steps", "compute_utilization=0.95"},
        {kTwoSites, "compute.step_time", "wall_clock=2min"},
        {kTwoSites + " --set prices.gpu_hour=2USD", "platform.bandwidth", "cost=0.1"},
        {kTwoSites, "platform.uplink", "tokens_per_s=1.1e6"}}) {
    for (const std::string engine : {"simulated", "closed-form"}) {
      CAPTURE(question.key);
      CAPTURE(engine);
      const json answer = json_of("fomoe solve " + question.scenario + " --engine " + engine + " --for " +
                                  question.key + " --target " + question.target)["answers"][0];
      REQUIRE_MESSAGE((answer["answer"] == "smallest" || answer["answer"] == "largest"), answer.dump());
      const double target = answer["target_value"], reached = answer["reached"],
                   beside = answer["reached_beside"];
      const bool at_least = answer["target"] == "compute_utilization" || answer["target"] == "tokens_per_s";
      CHECK((at_least ? reached >= target : reached <= target));
      CHECK((at_least ? beside < target : beside > target));
      const json run = json_of("fomoe simulate " + question.scenario + " --engine " + engine + " --set " +
                               question.key + "=" + answer["text"].get<std::string>());
      const double again = answer["target"] == "wall_clock" ? run["wall_clock_s"].get<double>()
                           : answer["target"] == "cost"
                               ? run["cost"]["cost_total"].get<double>()
                               : run[answer["target"].get<std::string>()].get<double>();
      CHECK(again == doctest::Approx(reached).epsilon(1e-9));
    }
  }
}

TEST_CASE("solve: without a target the answer is a table, and if no value helps, the reason") {
  const Ran table = run_in(source_dir(), "fomoe solve " + kTwoSites + " --for platform.bandwidth");
  CHECK(table.exit_status == 0);
  for (const char* share : {"≥ 50 %", "≥ 80 %", "≥ 90 %", "≥ 95 %", "≥ 99 %"})
    CHECK_MESSAGE(table.out.find(share) != std::string::npos, table.out);
  const Ran none = run_in(
      source_dir(), "fomoe solve " + kTwoSites +
                        " --set platform.sites=4 --set strategy.method=ddp --set strategy.fragments=1 --set "
                        "platform.latency=200ms --for platform.bandwidth --target compute_utilization=0.9");
  CHECK(none.exit_status == 3);  // nothing reaches the target
  // 0.42 s of compute and six latencies of 0.2 s in each step limit the utilisation to 0.42/1.62.
  CHECK_MESSAGE(none.out.find("no value reaches the target: the closest value tried is") != std::string::npos,
                none.out);
  CHECK_MESSAGE(none.out.find("with 25.926 %") != std::string::npos, none.out);
  CHECK_MESSAGE(none.out.find("strategy.collective=direct") != std::string::npos, none.out);
  const json every =
      json_of("fomoe solve " + kTwoSites + " --for strategy.expert_overlap --target wall_clock=1h");
  CHECK(every["answers"][0]["answer"] == "every");
}

TEST_CASE("solve: the factor on latencies, by hand") {
  // The wait of a round grows linearly with the factor f, w = w₁ + (f − 1)(w₂ − w₁). The equation 0.8 = c/(c
  // + w) therefore gives f.
  const auto round = [](const std::string& factor) {
    return json_of("fomoe simulate " + kTwoSites + " --set network_model.latency_factor=" + factor)["round"];
  };
  const double compute_s = round("1")["compute_s"];
  const double w1 = round("1")["exposed_communication_s"], w2 = round("2")["exposed_communication_s"];
  const json answer =
      json_of("fomoe solve " + kTwoSites +
              " --for network_model.latency_factor --target compute_utilization=0.8")["answers"][0];
  CHECK(answer["answer"] == "largest");
  // 2e-3: bisection ends at 0.1 %, and the answer is rounded down to four digits.
  CHECK(answer["value"].get<double>() ==
        doctest::Approx(1 + (compute_s / 0.8 - compute_s - w1) / (w2 - w1)).epsilon(2e-3));
}

TEST_CASE(
    "solve: sizes, multiples, factors, powers and prices are rounded to the side that reaches the target") {
  struct Question {
    std::string more, key, target, answer, unit;
  };
  const std::string energy = " --set energy.gpu_power=700W --set energy.idle_share=0.2";
  for (const Question& question : std::initializer_list<Question>{
           {"", "strategy.bucket_bytes", "compute_utilization=0.8", "smallest", "MiB"},
           {" --set strategy.bucket_bytes=9MB", "strategy.bucket_bytes", "compute_utilization=0.8",
            "smallest", "MB"},
           {"", "network_model.tcp_window", "compute_utilization=0.8", "smallest", "MiB"},
           {"", "network_model.payload_rate", "compute_utilization=0.8", "smallest", "Gbps"},
           {energy, "energy.gpu_power", "energy=0.02", "largest", "W"},
           {energy, "energy.pue", "energy=0.05", "largest", ""},
           {" --set prices.gpu_hour=2EUR", "prices.gpu_hour", "cost=0.25", "largest", "EUR"}}) {
    CAPTURE(question.key);
    const std::string scenario = kTwoSites + question.more;
    const json answer = json_of("fomoe solve " + scenario + " --for " + question.key + " --target " +
                                question.target)["answers"][0];
    REQUIRE_MESSAGE(answer["answer"] == question.answer, answer.dump());
    const std::string text = answer["text"];
    CHECK_MESSAGE(text.ends_with(question.unit), text);
    const double target = answer["target_value"];
    const json run = json_of("fomoe simulate " + scenario + " --set " + question.key + "=" + text);
    const double again = answer["target"] == "cost"     ? run["cost"]["cost_total"].get<double>()
                         : answer["target"] == "energy" ? run["cost"]["energy_kwh"].get<double>()
                                                        : run["compute_utilization"].get<double>();
    const double beside = answer["reached_beside"];
    const bool at_least = answer["target"] == "compute_utilization";
    CHECK((at_least ? again >= target : again <= target));
    CHECK((at_least ? beside < target : beside > target));
  }
}

TEST_CASE("solve: counts with divisibility constraints, also far above the scenario's own count") {
  // 3 GPUs share a replica, so that only their multiples are possible. Steps are compute alone, so that n
  // GPUs take 6/n of the time of 6 GPUs. 1/40 of the time needs 240 GPUs.
  const std::string scenario =
      kTwoSites +
      " --set strategy.method=ddp --set platform.latency=0ms --set platform.bandwidth=90000Tbps --set "
      "compute.peak_flops=1TFLOPS --set compute.mfu=0.4 --set compute.sharded=3 --set "
      "compute.gpus_per_site=6 --set workload.global_batch_sequences=12000 --engine closed-form";
  const double six_s = json_of("fomoe simulate " + scenario)["wall_clock_s"];
  const json answer =
      json_of("fomoe solve " + scenario + " --for compute.gpus_per_site --target wall_clock=" +
              std::to_string(six_s / 39.9) + "s")["answers"][0];
  CHECK(answer["answer"] == "smallest");
  CHECK(answer["value"] == 240);
}

TEST_CASE("solve: the answer says so if a key changes nothing or has a single value") {
  const Ran nothing = run_in(
      source_dir(), "fomoe solve " + kTwoSites + " --for trainer.learning_rate --target wall_clock=1h");
  CHECK(nothing.exit_status == 0);
  CHECK_MESSAGE(nothing.out.find("trainer.learning_rate does not change wall_clock in this scenario.") !=
                    std::string::npos,
                nothing.out);
  const Ran single = run_in(source_dir(), "fomoe solve " + kTwoSites +
                                              " --set compute.data_parallel=2 --set compute.gpus_per_site=2 "
                                              "--for compute.gpus_per_site --target wall_clock=1h");
  CHECK_MESSAGE(
      single.out.find("No other value is possible in this scenario: --for compute.gpus_per_site=") !=
          std::string::npos,
      single.out);
}

TEST_CASE("mistakes of `fomoe solve`") {
  const std::string solve = "fomoe solve " + kTwoSites;
  refused(solve, "fomoe: --for: got nothing; expected a key; for example --for platform.bandwidth");
  refused(
      solve + " --for platform.bandwith",
      "fomoe: --for: got \"platform.bandwith\"; expected a key whose value is a number: a count, rate, time, "
      "size, share, factor, power or price (`fomoe list keys`); for example --for platform.bandwidth; did "
      "you mean platform.bandwidth?");
  refused(
      solve + " --for strategy.method",
      // A key that exists is not taken for another one.
      "fomoe: --for: got \"strategy.method\", whose value is none that can be solved for; expected a key "
      "whose "
      "value is a number: a count, rate, time, size, share, factor, power or price (`fomoe list keys`); for "
      "example --for platform.bandwidth");
  refused(
      solve + " --for platform.bandwidth --target speed=3",
      "fomoe: --target: got \"speed=3\"; expected compute_utilization, wall_clock, cost, energy, "
      "tokens_per_s or loss; "
      "for example --target compute_utilization=0.95, --target wall_clock=3d, --target cost=5000, --target "
      "energy=800, --target tokens_per_s=1e6 or --target loss=2%");
  refused(solve + " --for platform.bandwidth --target cost=3",
          "fomoe: --target: got cost, and the scenario has no prices; expected [prices]; for example --set "
          "prices.gpu_hour=2.50USD");
  refused(
      solve + " --for bandwidth",
      "fomoe: --for: got \"bandwidth\"; expected a key whose value is a number: a count, rate, time, size, "
      "share, factor, power or price (`fomoe list keys`); for example --for platform.bandwidth; did you mean "
      "platform.bandwidth?");
  refused("fomoe solve experiments/scenarios/four-regions.toml --for platform.bandwidth",
          "fomoe: --for: got platform.bandwidth with a platform file, whose sites differ; expected the line "
          "of one "
          "site, a path, or a factor on all rates or latencies; for example --for "
          "site.aws:us-east-1.bandwidth, --for "
          "path.aws:us-east-1.azure:westeurope.latency, --for platform.rate_factor or --for "
          "network_model.latency_factor");
}

TEST_CASE("solve: the factor by which measured links have to be faster") {
  // For equal sites, a rate factor of two equals twice the bandwidth.
  const json by_factor =
      json_of("fomoe solve " + kTwoSites +
              " --for platform.rate_factor --target compute_utilization=0.92")["answers"][0];
  const json by_rate = json_of("fomoe solve " + kTwoSites +
                               " --for platform.bandwidth --target compute_utilization=0.92")["answers"][0];
  // 3e-3: both answers are bisected to 0.1 % and rounded up to four digits.
  CHECK(by_factor["value"].get<double>() ==
        doctest::Approx(by_rate["value"].get<double>() / 125e6).epsilon(3e-3));
  const json regions = json_of(
      "fomoe solve experiments/scenarios/eight-regions.toml --set network_model.host=ideal --set "
      "compute.step_time=1s --set "
      "strategy.local_steps=4 --for platform.rate_factor --target wall_clock=130min");
  CHECK(regions["answers"][0]["answer"] == "smallest");
  // The text has the rates of the slowest and the fastest path if the sites differ.
  const Ran words = run_in(source_dir(), "fomoe solve " + kTwoSites +
                                             " --set platform.bandwidth=10Gbps --for platform.rate_factor "
                                             "--target compute_utilization=0.9");
  CHECK(words.out.find("Every path between the sites then has ") != std::string::npos);
  const Ran four = run_in(source_dir(),
                          "fomoe solve experiments/scenarios/four-regions.toml --for platform.rate_factor "
                          "--target utilization=90% --engine closed-form");
  CHECK_MESSAGE(four.out.find(" The paths between the sites then have ") != std::string::npos, four.out);
}

TEST_CASE("explain: the last line is the closed form's answer") {
  for (const std::string more :
       {"", " --set strategy.method=ddp",
        " --set strategy.method=streaming_diloco --set strategy.fragments=2",
        " --set platform.sites=4 --set strategy.placement=fixed --set strategy.expert_overlap=2",
        " --set strategy.method=pipeline_wan", " --set strategy.method=expert_parallel_wan"}) {
    CAPTURE(more);
    const Ran ran = run_in(source_dir(), "fomoe explain " + kTwoSites + more);
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    const std::size_t at = ran.out.rfind("= ");
    const double last = std::stod(ran.out.substr(at + 2));
    const double wall_clock_s =
        json_of("fomoe simulate " + kTwoSites + more + " --engine closed-form")["wall_clock_s"];
    CHECK(last == doctest::Approx(wall_clock_s).epsilon(1e-9));  // the text has ten digits
  }
}

TEST_CASE("sensitivity: each row is the change that `--set` makes, and the largest is first") {
  const json run = json_of("fomoe simulate " + kTwoSites + " --engine closed-form");
  const json& list = run["sensitivity"];
  REQUIRE(list.size() >= 5);
  for (std::size_t i = 1; i < list.size(); ++i)
    CHECK(std::abs(list[i - 1]["change"].get<double>()) >= std::abs(list[i]["change"].get<double>()));
  const auto input = [&](const std::string& name) {
    for (const json& row : list) {
      if (row["input"] == name) return row;
    }
    FAIL("no " << name);
    return json();
  };
  const auto wall_clock_s = [](const std::string& setting) {
    return json_of("fomoe simulate " + kTwoSites + " --engine closed-form --sensitivity none --set " +
                   setting)["wall_clock_s"]
        .get<double>();
  };
  CHECK(input("link rates")["less_wall_clock_s"].get<double>() ==
        doctest::Approx(wall_clock_s("platform.bandwidth=900Mbps")).epsilon(1e-12));
  CHECK(input("link rates")["more_wall_clock_s"].get<double>() ==
        doctest::Approx(wall_clock_s("platform.bandwidth=1100Mbps")).epsilon(1e-12));
  CHECK(input("compute.step_time")["more_wall_clock_s"].get<double>() ==
        doctest::Approx(wall_clock_s("compute.step_time=462ms")).epsilon(1e-12));
  CHECK(input("latencies")["more_wall_clock_s"].get<double>() ==
        doctest::Approx(wall_clock_s("platform.latency=27.5ms")).epsilon(1e-12));
  CHECK(input("strategy.local_steps")["more_wall_clock_s"].get<double>() ==
        doctest::Approx(wall_clock_s("strategy.local_steps=18")).epsilon(1e-12));
  CHECK(json_of("fomoe simulate " + kTwoSites + " --sensitivity none")["sensitivity"].empty());
  // Only this option makes the simulator compute the sensitivity.
  const json simulated = json_of("fomoe simulate " + kTwoSites + " --sensitivity simulated")["sensitivity"];
  REQUIRE(simulated.size() == list.size());
  CHECK(simulated[0]["executor"] == "simulated");
  CHECK(list[0]["executor"] == "closed-form");
}

TEST_CASE("sensitivity in the text output names the engine, and warns if the closed form is far off") {
  const Ran near = run_in(source_dir(), "fomoe simulate " + kTwoSites);
  CHECK_MESSAGE(near.out.find("\ncomputed by the closed form\n") != std::string::npos, near.out);
  const Ran far =
      run_in(source_dir(), "fomoe simulate " + kTwoSites +
                               " --set network_model.call_overhead=20s --set strategy.local_steps=1 "
                               "--sensitivity closed-form");
  CHECK_MESSAGE(far.out.find("--sensitivity simulated uses the simulator") != std::string::npos, far.out);
}

TEST_CASE("sensitivity and the curve over bandwidth are simulated where the closed form approximates") {
  const auto at_once = [](const json& report) {  // the curve's point with the scenario's own rates
    for (const json& point : report["bandwidth_curve"]["points"])
      if (point["rate_factor"] == 1.0) return point["wall_clock_s"].get<double>();
    FAIL("no point of the curve has the factor 1");
    return 0.0;
  };
  for (const std::string& approximated :
       {kTwoSites + " --set network_model.call_overhead=50ms --set strategy.local_steps=1",
        kTwoSites + " --set network_model.jitter=20ms",
        kTwoSites +
            " --set strategy.method=ddp --unset strategy.expert_overlap --set strategy.collective=direct "
            "--set strategy.bucket_bytes=5MB --set platform.preset=two-continents --set platform.sites=4",
        std::string("experiments/scenarios/eight-regions.toml --set compute.step_time=420ms --set "
                    "network_model.host=ideal")}) {
    CAPTURE(approximated);
    const json report = json_of("fomoe simulate " + approximated);
    REQUIRE(!report["sensitivity"].empty());
    CHECK(report["sensitivity"][0]["executor"] == "simulated");
    CHECK(report["bandwidth_curve"]["executor"] == "simulated");
    CHECK(at_once(report) == doctest::Approx(report["wall_clock_s"].get<double>()).epsilon(1e-9));
    // Who asks for the closed form gets it for all figures.
    const json formula = json_of("fomoe simulate " + approximated + " --engine closed-form");
    CHECK(formula["sensitivity"][0]["executor"] == "closed-form");
    CHECK(at_once(formula) == doctest::Approx(formula["wall_clock_s"].get<double>()).epsilon(1e-9));
  }
}

TEST_CASE("completion in bash: the program itself supplies commands, options and keys") {
  const auto completed = [](const std::string& line) {
    const Ran ran = run_in(source_dir(),
                           "bash -c 'source tools/fomoe-completion.bash; COMP_LINE=\"" + line +
                               "\"; COMP_POINT=${#COMP_LINE}; _fomoe; printf \"%s\\n\" \"${COMPREPLY[@]}\"'");
    CHECK_MESSAGE(ran.exit_status == 0, ran.err);
    return ran.out;
  };
  CHECK(completed("fomoe so") == "solve\n");
  CHECK(completed("fomoe plan --mini") == "--minimise\n");
  CHECK(completed("fomoe simulate s.toml --set strategy.local") == "strategy.local_steps=\n");
  CHECK(completed("fomoe solve s.toml --for platform.band") == "platform.bandwidth\n");
  CHECK(completed("fomoe solve s.toml --for strategy.compression.ke") == "strategy.compression.kept_share\n");
  CHECK(completed("fomoe list ") == "methods\nmodels\nkeys\nplatforms\naccelerators\nprofiles\nquality\n");
  CHECK(completed("fomoe list pr") == "profiles\n");
  CHECK(completed("fomoe list --n") == "--near\n");
  CHECK(completed("fomoe sweep s.toml --pl") == "--plot\n");
  for (const char* command : {"cost", "simulate", "plan", "solve", "explain", "sweep", "list"})
    CHECK(completed("fomoe ").find(std::string(command) + "\n") != std::string::npos);
}

TEST_CASE("solve: a count far above usual values, near the scenario's own") {
  // At 1 USD for 3600 s and two GPUs, twice the scenario's cost pays for about twice as many tokens.
  const std::string scenario = kTwoSites + " --set prices.gpu_hour=1USD";
  const double cost = json_of("fomoe simulate " + scenario)["cost"]["cost_total"];
  const json answer = json_of("fomoe solve " + scenario + " --for workload.tokens --target cost=" +
                              std::to_string(2 * cost))["answers"][0];
  CHECK(answer["answer"] == "largest");
  CHECK(answer["value"].get<double>() == doctest::Approx(200e6).epsilon(0.02));  // only whole rounds
}

TEST_CASE("solve judges a deadline by the median run with failures") {
  const std::string command =
      "fomoe solve " + kTwoSites +
      " --for platform.bandwidth --target wall_clock=150s --set failures.checkpoint_cost=1s "
      "--set failures.site_mtbf=";
  const Ran rarely = run_in(source_dir(), command + "10000h"), often = run_in(source_dir(), command + "300s");
  REQUIRE_MESSAGE(rarely.exit_status == 0, rarely.err);
  REQUIRE_MESSAGE(often.exit_status == 0, often.err);
  CHECK(rarely.out.starts_with("Wall clocks and costs are those of the median run with failures.\n"));
  CHECK(often.out != rarely.out);
}
