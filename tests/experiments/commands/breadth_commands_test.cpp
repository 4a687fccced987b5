// Tests of failures, replicas and SimGrid's XML platforms through the program.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/answer.hpp"

namespace {

using namespace fomoe::tests;
using nlohmann::json;

const std::string kRandom =
    "fomoe simulate tests/ideal/two-sites.toml --set platform.sites=4 --set "
    "strategy.placement=random --set network_model.jitter=20ms";

json answer_of(const std::string& command) { return answer(command + " --output -"); }

void refused(const std::string& command, const std::string& message) {
  const Ran ran = run_in(source_dir(), command);
  CHECK(ran.exit_status == 2);
  CHECK(ran.out.empty());
  CHECK_MESSAGE(ran.err.starts_with(message), ran.err);
}

const std::string kXmlScenario = R"(seed = 1
[model]
preset = "small"
[workload]
tokens = 1e6
global_batch_sequences = 12
[strategy]
method = "ddp"
[compute]
step_time = "100ms"
[platform]
file = "p.xml"
)";

std::string xml(const std::string& name) { return read_all(source_dir() + "/tests/sim/platforms/" + name); }

}  // namespace

TEST_CASE("--replicas gives the same results as running each seed separately") {
  const json all = answer_of(kRandom + " --seed 7 --replicas 3");
  double sum_s = 0, sum_utilization = 0;
  for (const char* seed : {"7", "8", "9"}) {
    const json one = answer_of(kRandom + " --seed " + seed);
    sum_s += one["wall_clock_s"].get<double>();
    sum_utilization += one["compute_utilization"].get<double>();
    if (std::string(seed) == "7") CHECK(one["wall_clock_s"] == all["wall_clock_s"]);
  }
  const json& replicas = all["replicas"];
  CHECK(replicas["count"] == 3);
  CHECK(replicas["first_seed"] == 7);
  CHECK(replicas["wall_clock_s"]["mean"].get<double>() == doctest::Approx(sum_s / 3).epsilon(1e-12));
  CHECK(replicas["compute_utilization"]["mean"].get<double>() ==
        doctest::Approx(sum_utilization / 3).epsilon(1e-12));
  const json& spread = replicas["wall_clock_s"];
  CHECK(spread["p5"].get<double>() < spread["p50"].get<double>());
  CHECK(spread["p50"].get<double>() < spread["p95"].get<double>());
  CHECK(spread["mean_95_percent"][0].get<double>() < spread["mean"].get<double>());
  CHECK(answer_of(kRandom + " --seed 7 --replicas 3") == all);
}

TEST_CASE("--replicas in the text output, also where the seed changes nothing") {
  CHECK(run_in(source_dir(), kRandom + " --replicas 4").out.find("4 seeds from 42") != std::string::npos);
  const json same = answer_of("fomoe simulate tests/ideal/two-sites.toml --replicas 2");
  CHECK(same["notes"].dump().find("all replicas took the same time") != std::string::npos);
  CHECK(same["replicas"]["wall_clock_s"]["p5"] == same["wall_clock_s"]);
  refused(kRandom + " --replicas 1",
          "fomoe: --replicas: got \"1\"; expected a whole number from 2 to 100000; for example");
  refused(kRandom + " --replicas 3 --engine closed-form",
          "fomoe: --replicas: got this option with --engine closed-form");
}

TEST_CASE("[failures]: goodput in JSON and in the text output, the same for the same seed") {
  const std::string failing =
      "fomoe simulate tests/ideal/two-sites.toml --set failures.site_mtbf=10min --set "
      "failures.checkpoint_cost=2s --set failures.restart_time=1min --set prices.gpu_hour=2USD";
  const json run = answer_of(failing);
  const json& goodput = run["goodput"];
  CHECK(goodput["policy"] == "wait");
  CHECK(goodput["samples"] == 1000);
  CHECK(goodput["system_mtbf_s"] == 300);
  CHECK(goodput["goodput"].get<double>() > 0);
  CHECK(goodput["goodput"].get<double>() < 1);
  CHECK(goodput["finish_p50_s"].get<double>() >= run["wall_clock_s"].get<double>());
  CHECK(goodput["finish_p95_s"].get<double>() > goodput["finish_p50_s"].get<double>());
  CHECK(goodput["cost_p95"].get<double>() > goodput["cost_p50"].get<double>());
  CHECK(run["scenario"]["failures"]["site_mtbf_s"] == 600);
  CHECK(run["scenario"]["failures"]["link_mtbf_s"].is_null());
  CHECK(answer_of(failing) == run);
  const std::string text = run_in(source_dir(), failing).out;
  for (const char* words : {"with failures, policy wait", "finish time, p95", "recommended time-out", "Daly"})
    CHECK(text.find(words) != std::string::npos);
  CHECK(answer_of(failing + " --engine closed-form")["goodput"]["samples"] == 1000);
  CHECK_FALSE(answer_of("fomoe simulate tests/ideal/two-sites.toml").contains("goodput"));
  // With O_e = 1 a lost site would hold the only copy of its experts.
  const std::string copies = failing + " --set strategy.expert_overlap=2";
  CHECK(answer_of(copies + " --set failures.policy=drop")["goodput"]["timeout_s"] ==
        answer_of(copies)["goodput"]["recommended_timeout_s"]);
}

TEST_CASE("[failures]: dead links under policy wait end with a message instead of an endless run") {
  const Ran ran = run_in(source_dir(),
                         "fomoe simulate tests/ideal/two-sites.toml --set failures.link_mtbf=1s --set "
                         "failures.links_stay_dead=true --set failures.checkpoint_cost=1s");
  CHECK(ran.exit_status == 0);
  CHECK(ran.out.find("Note: CANNOT FINISH in 1000 of 1000 samples") != std::string::npos);
  CHECK(ran.out.find("never") != std::string::npos);
}

TEST_CASE("platform.file in SimGrid's XML is read, cut to its first sites, and swept") {
  const Folder folder;
  write_all(folder / "s.toml", kXmlScenario);
  write_all(folder / "p.xml", xml("asymmetric.xml"));
  const Ran ran = run_in(folder.path(), "fomoe simulate s.toml --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json run = json::parse(ran.out);
  CHECK(run["scenario"]["platform"]["sites"].size() == 3);
  CHECK(run["provenance"].dump().find("read by SimGrid") != std::string::npos);
  const Ran two = run_in(folder.path(), "fomoe simulate s.toml --set platform.sites=2 --output -");
  REQUIRE_MESSAGE(two.exit_status == 0, two.err);
  CHECK(json::parse(two.out)["scenario"]["platform"]["sites"].size() == 2);
  const Ran sweep =
      run_in(folder.path(), "fomoe sweep s.toml --vary strategy.local_steps=1,2 --output a.csv");
  CHECK_MESSAGE(sweep.exit_status == 0, sweep.err);
  CHECK(std::filesystem::exists(folder / "a.csv"));
}

TEST_CASE("wrong XML: the message has the file's name, the exit status is 2, and no file is left") {
  const Folder folder;
  write_all(folder / "s.toml", kXmlScenario);
  const auto expect = [&](const std::string& message) {
    const Ran ran = run_in(folder.path(), "fomoe simulate s.toml --output a.json");
    CHECK(ran.exit_status == 2);
    CHECK_MESSAGE(ran.err.starts_with(message), ran.err);
    CHECK(ran.err.find("; for example ") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder / "a.json"));
  };
  expect("s.toml:12: platform.file: got \"p.xml\" (no such file: p.xml); expected a file");
  write_all(folder / "p.xml", "sites = 3\n");
  expect("p.xml: got a file that SimGrid cannot read (Parse error at p.xml:1");
}

TEST_CASE("compare: a value in quotes or brackets may have spaces") {
  const Ran ran =
      run_in(source_dir(),
             "fomoe compare experiments/scenarios/eight-regions.toml --set compute.step_time=420ms --engine "
             "closed-form --case \"platform.use_sites='azure:eastus, aws:us-east-1' strategy.local_steps=8\" "
             "--case 'platform.use_sites=[\"azure:eastus\", \"azure:westus3\"]' --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(ran.out.find("azure:westus3") != std::string::npos);
}

TEST_CASE(
    "sweep: several sites without quotes are no sets of one site each, and a line of one site is swept") {
  const std::string sweep =
      "fomoe sweep experiments/scenarios/eight-regions.toml --set compute.step_time=420ms --output - ";
  const Ran sets = run_in(source_dir(), sweep + "--vary platform.use_sites=azure:eastus,aws:us-east-1");
  CHECK(sets.exit_status == 2);
  CHECK_MESSAGE(sets.err.find("2 sets of one site each") != std::string::npos, sets.err);
  const Ran line = run_in(source_dir(), sweep + "--vary site.azure:eastus.bandwidth=10Mbps,1Gbps");
  REQUIRE_MESSAGE(line.exit_status == 0, line.err);
  CHECK(line.out.find("site.azure:eastus.bandwidth_bytes_per_s") != std::string::npos);
  const Ran solved =
      run_in(source_dir(),
             "fomoe solve experiments/scenarios/eight-regions.toml --set compute.step_time=420ms --engine "
             "closed-form --for site.azure:eastus.bandwidth --target utilization=20%");
  REQUIRE_MESSAGE(solved.exit_status == 0, solved.err);
  CHECK_MESSAGE(solved.out.find("Gbps") != std::string::npos, solved.out);
}

TEST_CASE("a step that exceeds the peak rate of the GPUs is refused, and one that is near it is doubted") {
  const std::string simulate =
      "fomoe simulate experiments/scenarios/four-regions.toml --engine closed-form --unset compute.mfu --set "
      "compute.accelerator=H100-SXM "
      "--set compute.step_time=";
  const Ran fast = run_in(source_dir(), simulate + "1ms");
  CHECK(fast.exit_status == 2);
  CHECK_MESSAGE(fast.err.find("an MFU of") != std::string::npos, fast.err);
  const std::size_t least = fast.err.find("at least ") + 9;
  const double seconds = std::stod(fast.err.substr(least));
  const Ran near_peak = run_in(source_dir(), simulate + std::to_string(seconds * 1.1) + "s");
  REQUIRE_MESSAGE(near_peak.exit_status == 0, near_peak.err);
  CHECK_MESSAGE(near_peak.out.find("Warning: the steps have an MFU of 9") != std::string::npos,
                near_peak.out);
}

TEST_CASE("a model of unknown depth that does not fit because its weights are gathered at once says so") {
  const std::string cost =
      "fomoe cost tests/ideal/two-sites.toml --set model.dense_parameters=70e9 --set "
      "model.sequence_length=4096 --set "
      "compute.accelerator=H100-SXM --set compute.mfu=0.4 --unset compute.step_time --set "
      "compute.gpus_per_site=256 "
      "--set compute.sharded=256 --set workload.global_batch_sequences=1024 --set strategy.method=diloco ";
  CHECK(has(run(cost).out, "all weights are gathered at once, because model.layers is not given"));
  CHECK_FALSE(has(run(cost + "--set model.layers=80").out, "does not fit"));
}
