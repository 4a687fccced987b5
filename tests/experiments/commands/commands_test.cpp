// Tests of the commands through the program: help, pasted examples, machine-readable answers, and the same
// bytes twice.
#include <doctest/doctest.h>

#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/experiments/answer.hpp"

namespace {

using namespace fomoe::tests;
using nlohmann::json;

const std::vector<std::string> kCommands = {"", "cost", "simulate", "compare", "sweep", "reproduce", "list"};
const std::string kEightRegions =
    "experiments/scenarios/eight-regions.toml --set compute.step_time=420ms --set network_model.host=ideal";

std::vector<std::string> examples(const std::string& help) {
  std::vector<std::string> lines;
  std::istringstream text(help.substr(help.find("Examples:\n")));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("  fomoe ")) lines.push_back(line.substr(2));
  }
  return lines;
}

}  // namespace

TEST_CASE("--help of every command exits 0, and its examples run when pasted") {
  const std::string readme = read_all(source_dir() + "/README.md");
  for (const std::string& command : kCommands) {
    CAPTURE(command);
    const Ran help = run("fomoe " + command + " --help");
    CHECK(help.exit_status == 0);
    CHECK(help.err.empty());
    const std::vector<std::string> lines = examples(help.out);
    CHECK_FALSE(lines.empty());
    for (const std::string& line : lines) {
      CAPTURE(line);
      if (readme.find('$' + line + '\n') != std::string::npos) continue;  // readme_test.cpp runs it
      const Ran ran = run(line);
      CHECK(ran.exit_status == 0);
      // With connections, sweeps by the closed form say that it is an approximation.
      CHECK((ran.err.empty() || ran.err.starts_with("the closed form only approximates")));
      CHECK_FALSE(ran.out.empty());
    }
  }
}

TEST_CASE("fomoe --help names every command") {
  const std::string help = run("fomoe --help").out;
  for (const std::string& command : kCommands) CHECK(help.find(command) != std::string::npos);
}

TEST_CASE("simulate --output - has the keys that other programs read") {
  const json run = answer("fomoe simulate " + kTwoSites + " --output -");
  CHECK(run["schema"] == "fomoe.run/1");
  CHECK(run["executor"] == "simulated");
  for (const char* key : {"wall_clock_s", "compute_utilization", "tokens_per_s", "bytes_per_token",
                          "bytes_sent_per_site_per_round"}) {
    CAPTURE(key);
    CHECK(run[key].is_number());
  }
  for (const char* key :
       {"count", "duration_s", "compute_s", "communication_s", "exposed_communication_s", "idle_s"}) {
    CAPTURE(key);
    CHECK(run["round"][key].is_number());
  }
  REQUIRE(run["sites"].size() == 2);
  CHECK(run["sites"][1]["name"] == "site-1");
  for (const char* key : {"bytes_sent", "bytes_received", "memory_bytes"})
    CHECK(run["sites"][0][key].is_number());
  for (const char* key : {"limited_by", "link", "link_busy_share"}) CHECK(run["bottleneck"].contains(key));
  REQUIRE(run["provenance"].is_array());
  for (const json& entry : run["provenance"]) {
    CHECK(entry["what"].is_string());
    CHECK(entry["detail"].is_string());
    CHECK(std::set<std::string>{"measured", "calibrated", "computed", "assumed"}.contains(entry["origin"]));
  }
  CHECK(run["notes"].is_array());
  CHECK(run["optimizer_steps"] == 191);  // ⌈100e6 ÷ (256 · 2048)⌉
  CHECK(run["scenario"]["platform"]["sites"][0]["uplink_bytes_per_s"] == 125e6);
  CHECK(run["scenario"]["compute"]["step_time_s"] == 0.42);
}

TEST_CASE("simulate: duration is compute plus exposed communication plus idle") {
  const json round = answer("fomoe simulate " + kEightRegions + " --output -")["round"];
  CHECK(round["duration_s"].get<double>() ==
        doctest::Approx(round["compute_s"].get<double>() + round["exposed_communication_s"].get<double>() +
                        round["idle_s"].get<double>()));
}

TEST_CASE("simulate --engine closed-form equals the simulation where sites are equal and latency is zero") {
  const std::string ideal =
      kTwoSites + " --set platform.latency=0s --set strategy.expert_overlap=2 --output -";
  const double simulated = answer("fomoe simulate " + ideal)["wall_clock_s"];
  const json closed = answer("fomoe simulate " + ideal + " --engine closed-form");
  CHECK(closed["executor"] == "closed-form");
  CHECK(simulated == doctest::Approx(closed["wall_clock_s"].get<double>()).epsilon(1e-6));
}

TEST_CASE("the same command gives the same bytes, also with random placements") {
  const std::string random =
      "fomoe simulate " + kEightRegions + " --set strategy.placement=random --seed 5 --output -";
  const Ran first = run(random), second = run(random);
  CHECK(first.exit_status == 0);
  CHECK(first.out == second.out);
  CHECK(json::parse(first.out)["scenario"]["seed"] == 5);
  CHECK(first.out !=
        run("fomoe simulate " + kEightRegions + " --set strategy.placement=random --seed 6 --output -").out);
  CHECK(run("fomoe cost " + kTwoSites).out == run("fomoe cost " + kTwoSites).out);
}

TEST_CASE("files: JSON equals the output of -, a CSV has one row, a trace has one process per site") {
  const Folder folder;
  const std::string base = "fomoe simulate " + kTwoSites + " --output ";
  CHECK(run(base + (folder / "r.json") + " --trace " + (folder / "t.json")).exit_status == 0);
  CHECK(read_all(folder / "r.json") == run(base + "-").out);

  const json trace = json::parse(read_all(folder / "t.json"));
  std::set<std::string> processes;
  std::size_t spans = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") processes.insert(event["args"]["name"].get<std::string>());
    if (event["ph"] != "X") continue;
    ++spans;
    CHECK(event["dur"].get<double>() >= 0);
  }
  CHECK(processes == std::set<std::string>{"site-0", "site-1"});
  CHECK(spans > 0);

  CHECK(run(base + (folder / "r.csv")).exit_status == 0);
  std::istringstream csv(read_all(folder / "r.csv"));
  std::string header, row, none;
  std::getline(csv, header);
  std::getline(csv, row);
  CHECK_FALSE(std::getline(csv, none));
  CHECK(header.starts_with("executor,method,sites,local_steps,expert_overlap,wall_clock_s,"));
  CHECK(std::count(header.begin(), header.end(), ',') == std::count(row.begin(), row.end(), ','));
}

TEST_CASE("cost --output - has the keys that other programs read, and they add up") {
  const json cost = answer("fomoe cost " + kTwoSites + " --output -");
  CHECK(cost["schema"] == "fomoe.cost/1");
  std::int64_t sum = 0;
  for (const char* part : {"embedding", "attention", "dense_ffn", "router", "expert", "norm"}) {
    sum += cost["parameters"][part].get<std::int64_t>();
  }
  CHECK(cost["parameters"]["total"] == sum);
  CHECK(cost["parameters"]["embedding"] == 200019 * 256);
  CHECK(cost["flops_per_token"].is_number());
  CHECK(cost["memory_bytes_per_site"] == cost["memory_bytes_per_gpu"]);
  // Every class of traffic is present, even if it is zero.
  for (const char* traffic : {"dense", "expert_sync", "migration"})
    CHECK(cost["sent_bytes_per_site"][traffic].is_number());
  // With O_e = 1 no expert has a second copy. In a ring of 2 each site sends 2(M−1)/M = 1 times the payload.
  CHECK(cost["sent_bytes_per_site"]["expert_sync"] == 0);
  // Outer state is 8 B per parameter in addition to 18 B.
  CHECK(cost["memory_bytes_per_site"].get<double>() == 26 * cost["parameters_per_site"].get<double>());
}

TEST_CASE("cost: replicas on the GPUs of a site multiply the site's memory") {
  const json cost = answer(
      "fomoe cost " + kTwoSites +
      " --set compute.peak_flops=989TFLOPS --set compute.mfu=0.4 --set compute.gpus_per_site=8 --output -");
  CHECK(cost["memory_bytes_per_site"].get<double>() == 8 * cost["memory_bytes_per_gpu"].get<double>());
}

TEST_CASE("cost and simulate agree on memory; with memory given, cost finds the largest micro-batch") {
  const std::string gpus =
      " --set compute.gpus_per_site=8 --set compute.sharded=4 --set compute.micro_batch_sequences=2 --set "
      "compute.gpu_memory=80GiB --set compute.activation_checkpointing=true --output -";
  const json cost = answer("fomoe cost " + kTwoSites + gpus);
  const json run = answer("fomoe simulate " + kTwoSites + gpus);
  CHECK(run["sites"][0]["memory_bytes"] == cost["memory_bytes_per_site"]);
  double classes = 0;
  for (const auto& item : cost["memory"].items()) classes += item.value().get<double>();
  CHECK(classes == doctest::Approx(cost["memory_bytes_per_gpu"].get<double>()).epsilon(1e-14));
  CHECK(cost["memory"]["activations_bytes"].get<double>() > 0);
  const std::string largest = std::to_string(cost["largest_micro_batch_sequences"].get<int>());
  const json full =
      answer("fomoe cost " + kTwoSites + gpus + " --set compute.micro_batch_sequences=" + largest);
  CHECK(full["memory_bytes_per_gpu"].get<double>() <= 80.0 * 1024 * 1024 * 1024);
  // A third of all FLOPs but those of the unembedding, 6 per element of 200,019 · 256.
  CHECK(cost["flops"]["recomputed_per_token"].get<double>() ==
        doctest::Approx((cost["flops_per_token"].get<double>() - 6.0 * 200'019 * 256) / 3).epsilon(1e-13));
}

TEST_CASE("cost: opaque counts with a batch in tokens") {
  const json cost = answer("fomoe cost " + kTwoSites +
                           " --set model.dense_parameters=124e6 --set model.expert_parameters=1.6e9 --set "
                           "model.experts=8 --set model.active_experts=2 --set model.layers=12 --set "
                           "workload.global_batch_tokens=1000000 --output -");
  CHECK(cost["parameters"]["total"] == 1'724'000'000);
  CHECK(cost["active_parameters"] == 124'000'000 + 1'600'000'000 / 4);
  CHECK(cost["scenario"]["workload"]["global_batch_sequences"] == 1'000'000);  // a sequence is one token
  CHECK(cost["scenario"]["model"]["architecture"] == "opaque");
}

TEST_CASE("cost: with skip-token the two accountings differ, and the report names the one it used") {
  const std::string skip =
      "fomoe cost " + kTwoSites + " --set strategy.skip_token=true --output - --accounting ";
  const json mechanism = answer(skip + "mechanism"), paper = answer(skip + "paper");
  CHECK(mechanism["flops_per_token"] != paper["flops_per_token"]);
  CHECK(paper["flops"]["accounting"] == "paper");
}

TEST_CASE("compare: one table, the fastest case, the reason, and what the answer leaves out") {
  const Ran ran =
      run("fomoe compare " + kTwoSites +
          " --case strategy.method=ddp --case \"strategy.method=diloco strategy.local_steps=32\"");
  CHECK(ran.exit_status == 0);
  CHECK(ran.out.find("Fastest: diloco with K = 32, O_e = 2 (") != std::string::npos);
  CHECK(ran.out.find("times as fast as ddp with K = 1, O_e = 2 (") != std::string::npos);
  CHECK(ran.out.find("mostly for bandwidth") != std::string::npos);
  CHECK(ran.out.find("This answer does not include model quality") != std::string::npos);
}

TEST_CASE("compare: among equally fast cases the one that synchronises most often is named") {
  const Ran ran = run("fomoe compare " + kTwoSites +
                      " --set platform.bandwidth=1Tbps --set platform.latency=0s --case "
                      "strategy.local_steps=64 --case strategy.local_steps=8");
  CHECK(ran.out.find(". Its time equals that of fomoe with K = 64, O_e = 1 (") != std::string::npos);
  CHECK(ran.out.find("Fastest: fomoe with K = 8, O_e = 1 (") != std::string::npos);
  CHECK(ran.out.find("within 1 %, and of these cases it synchronises most often.") != std::string::npos);
}

TEST_CASE("compare: a mistake in the last case is found before any case runs") {
  const Ran ran =
      run("fomoe compare " + kTwoSites + " --case strategy.method=ddp --case strategy.method=dpd");
  CHECK(ran.exit_status == 2);
  CHECK(ran.out.empty());
  CHECK(ran.err.starts_with("--set strategy.method=dpd: strategy.method: got \"dpd\""));
}

TEST_CASE("compare: JSON and CSV have every case") {
  const Folder folder;
  const std::string cases =
      "fomoe compare " + kTwoSites + " --case strategy.method=ddp --case \"\" --output ";
  const json all = answer(cases + "-");
  CHECK(all["schema"] == "fomoe.compare/1");
  REQUIRE(all["cases"].size() == 2);
  CHECK(all["cases"][0]["report"]["scenario"]["strategy"]["method"] == "ddp");
  CHECK(all["cases"][1]["case"] == "");
  CHECK(run(cases + (folder / "c.csv")).exit_status == 0);
  const std::string csv = read_all(folder / "c.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  CHECK(csv.starts_with("case,executor,"));
}

TEST_CASE("list: methods, models, keys and platforms") {
  CHECK(run("fomoe list methods").out.find("local_adamw") != std::string::npos);
  const std::string models = run("fomoe list models").out;
  for (const char* word :
       {"xxl", "deepseek_v3", "starcoder2", "model.safetensors", "fomoe.model_from_transformers"})
    CHECK(models.find(word) != std::string::npos);
  CHECK(run("fomoe list platforms").out.find("platforms/eight-regions.toml") != std::string::npos);
  const std::string keys = run("fomoe list keys").out;
  for (const char* key :
       {"[strategy]", "local_steps = 32", "bandwidth_efficiency = 0.956", "[[site]]", "[default_path]"}) {
    CAPTURE(key);
    CHECK(keys.find(key) != std::string::npos);
  }
}

TEST_CASE("an answer that cannot be written completely leaves no file, and the exit status is 1") {
  const Folder folder;
  // The limit forbids files of more than 0 blocks. The signal that it raises (25, SIGXFSZ) is ignored.
  const Ran ran = run("sh -c \"trap '' 25; ulimit -f 0; exec fomoe cost " + kTwoSites + " --output " +
                      (folder / "a.json") + "\"");
  CHECK(ran.exit_status == 1);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("compare: K is the scenario's, also where the last round is short") {
  // 191 steps: 12 rounds of 16, the last one with 15, and 2 rounds of 100, the last one with 91.
  const Ran ran = run("fomoe compare " + kTwoSites +
                      " --engine closed-form --case strategy.local_steps=16 --case strategy.local_steps=100");
  REQUIRE(ran.exit_status == 0);
  CHECK(std::regex_search(ran.out, std::regex("fomoe +16 ")));
  CHECK(std::regex_search(ran.out, std::regex("fomoe +100 ")));
}

TEST_CASE("compare: where a ring mostly waits for latency, the answer suggests another collective") {
  const std::string far =
      "fomoe compare " + kTwoSites +
      " --set platform.sites=4 --set platform.bandwidth=10Gbps --set platform.latency=200ms ";
  const Ran ring = run(far + "--case strategy.method=diloco");
  CHECK(ring.out.find("mostly for latency") != std::string::npos);
  CHECK(ring.out.find("try strategy.collective=direct") != std::string::npos);
  const Ran both =
      run(far + "--case strategy.method=diloco --case \"strategy.method=diloco strategy.collective=direct\"");
  CHECK(both.out.find("Fastest: diloco collective=direct with") != std::string::npos);
  CHECK(both.out.find("try strategy.collective=direct") == std::string::npos);
}

TEST_CASE("compare says which cases have the same answer, and why") {
  const Ran ran = run_in(source_dir(), "fomoe compare " + kTwoSites +
                                           " --case strategy.method=diloco --case 'strategy.method=diloco "
                                           "strategy.overlap_steps=2' --case strategy.method=ddp");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK_MESSAGE(
      ran.out.find("has the same time and bytes as diloco overlap_steps=2 with K = 16") != std::string::npos,
      ran.out);
  CHECK_MESSAGE(
      ran.out.find("diloco does not use overlap_steps, so its value is ignored") != std::string::npos,
      ran.out);
}

TEST_CASE("rows of a sweep say whether they fit into the GPUs' memory") {
  const Folder folder;
  const Ran ran = run_in(folder.path(), "fomoe sweep " + kTwoSites +
                                            " --set compute.gpus_per_site=2 --engine closed-form --vary "
                                            "compute.gpu_memory=1MB,80GB --output s.json");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const nlohmann::json rows = nlohmann::json::parse(read_all(folder / "s.json"))["rows"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["fits"] == false);
  CHECK(rows[0]["problem"].get<std::string>().starts_with("needs "));
  CHECK(rows[0]["wall_clock_s"] == rows[1]["wall_clock_s"]);
  CHECK(rows[1]["fits"] == true);
  CHECK_FALSE(rows[1].contains("problem"));
  const Ran csv =
      run_in(folder.path(), "fomoe simulate " + kTwoSites + " --set compute.gpu_memory=1MB --output s.csv");
  REQUIRE_MESSAGE(csv.exit_status == 0, csv.err);
  const std::string text = read_all(folder / "s.csv");
  CHECK(text.substr(0, text.find('\n')).ends_with(",fits,problem"));
  CHECK(text.find(",false,") != std::string::npos);
}

TEST_CASE("every program says its version") {
  for (const std::string program : {"fomoe", "fomoe-wan", "fomoe-train"}) {
    if (!std::filesystem::exists(std::string(FOMOE_BINARY_DIR "/") + program)) continue;
    const Ran ran = run_in(source_dir(), program + " --version");
    CHECK(ran.exit_status == 0);
    REQUIRE(ran.out.starts_with(program + " "));
    CHECK(std::isdigit(static_cast<unsigned char>(ran.out[program.size() + 1])) != 0);
  }
}
