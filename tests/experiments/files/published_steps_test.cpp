// Tests of the catalogue of published training speeds, and of scenarios that use a row of it.
#include "experiments/files/published_steps.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "costmodel/formula/closed_form.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using doctest::Approx;
using nlohmann::json;
using scenario::PublishedSteps;

namespace {

PublishedSteps row_of(const std::string& quantity, double value) {
  PublishedSteps row;
  row.accelerator = "H100-SXM";
  row.dtype = "bf16";
  row.quantity = quantity;
  row.value = value;
  return row;
}

}  // namespace

TEST_CASE("every published row has a source, a known device and a plausible utilisation") {
  std::set<std::string> ids;
  int mixtures = 0;
  for (const PublishedSteps& row : scenario::published_steps()) {
    CAPTURE(row.id);
    CHECK(ids.insert(row.id).second);
    CHECK(row.source.find("://") != std::string::npos);
    CHECK(scenario::find_accelerator(row.accelerator) != nullptr);
    CHECK(row.value > 0);
    const auto mfu = scenario::mfu_of(row);
    if (mfu) CHECK((*mfu > 0.01 && *mfu < 0.9));
    if (row.total_parameters && row.active_parameters) {
      CHECK(*row.active_parameters <= *row.total_parameters);
      mixtures += *row.active_parameters < 0.9 * *row.total_parameters ? 1 : 0;
    }
  }
  CHECK(ids.size() >= 40);
  CHECK(mixtures >= 15);
}

TEST_CASE("tokens per second and MFU of a row, by hand") {
  // 16 sequences of 4,096 tokens in 2 s on 8 GPUs.
  PublishedSteps steps = row_of("step_time_s", 2);
  CHECK_FALSE(scenario::tokens_per_s_per_gpu(steps).has_value());
  steps.gpus = 8;
  steps.global_batch_sequences = 16;
  steps.sequence_length = 4096;
  CHECK(*scenario::tokens_per_s_per_gpu(steps) == Approx(4096));
  CHECK_FALSE(scenario::mfu_of(steps).has_value());
  steps.active_parameters = 8e9;
  CHECK(*scenario::mfu_of(steps) == Approx(6 * 8e9 * 4096 / 989.5e12));
  steps.stated_mfu = 0.25;
  CHECK(*scenario::mfu_of(steps) == 0.25);
  CHECK(*scenario::mfu_of(row_of("model_tflops_per_gpu", 400)) == Approx(400e12 / 989.5e12));
}

TEST_CASE("a scenario that uses a published speed has its tokens per second, and says whose they are") {
  const PublishedSteps* row = scenario::find_published_steps("torchtitan-llama3.1-8b-8xh100-bf16");
  REQUIRE(row != nullptr);
  const std::string command =
      "fomoe simulate " + kTwoSites + " --set model.hf_config=" + source_dir() +
      "/experiments/models/llama-3.1-8b.json"
      " --set model.sequence_length=8192 --set workload.tokens=1e9 --set strategy.method=diloco"
      " --unset strategy.expert_overlap --set platform.bandwidth=1000Gbps --set platform.latency=0s"
      " --set compute.gpus_per_site=8 --output - --set compute.profile=published:";
  const Ran ran = run_in(source_dir(), command + row->id);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json report = json::parse(ran.out);
  // Two sites of 8 GPUs compute for the time that their tokens take at the published rate.
  const double tokens = report["tokens"].get<double>();
  const double compute_s =
      report["round"]["compute_s"].get<double>() * report["round"]["count"].get<double>();
  CHECK(tokens / (16 * compute_s) == Approx(*scenario::tokens_per_s_per_gpu(*row)).epsilon(1e-3));
  std::string said;
  for (const auto& entry : report["provenance"])
    if (entry["what"] == "MFU") said = entry["detail"];
  CHECK(said.find("a published run of Llama 3.1 8B on H100-SXM") != std::string::npos);

  const Ran wrong = run_in(source_dir(), command + "torchtitan-llama3.1-8b-8xh100-bf15");
  CHECK(wrong.exit_status == 2);
  CHECK(wrong.err.find("did you mean published:torchtitan-llama3.1-8b-8xh100-bf16?") != std::string::npos);
}

TEST_CASE("a published speed is of its own device: another peak, format or accelerator is refused") {
  const std::string command = "fomoe simulate " + kTwoSites +
                              " --engine closed-form --set "
                              "compute.profile=published:torchtitan-llama3.1-8b-8xh100-bf16 --set compute.";
  for (const char* key : {"peak_flops=312TFLOPS", "dtype=fp8", "accelerator=A100-80GB-SXM"}) {
    CAPTURE(std::string(key));
    const Ran refused = run_in(source_dir(), command + key);
    CHECK(refused.exit_status == 2);
    CHECK(refused.err.find("together with profile = \"published:") != std::string::npos);
  }
  CHECK(run_in(source_dir(), command + "accelerator=H100-SXM").exit_status == 0);
}

TEST_CASE("shares of the peak: mxfp8 has that of fp8, and a format without a known peak has none") {
  PublishedSteps row = row_of("model_tflops_per_gpu", 400);
  row.dtype = "mxfp8";
  CHECK(*scenario::mfu_of(row) == Approx(400e12 / 1979e12).epsilon(1e-3));
  row.dtype = "nvfp4";
  CHECK(!scenario::mfu_of(row));
}

TEST_CASE("published runs that bound an interval have the scenario's number format") {
  const Ran ran = run_in(source_dir(),
                         "fomoe simulate experiments/scenarios/four-regions.toml --engine closed-form --set "
                         "model.hf_config=../models/llama-3.1-8b.json");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const std::size_t at = ran.out.find("closest to this model");
  REQUIRE(at != std::string::npos);
  const std::string named = ran.out.substr(at, ran.out.find("(fomoe list profiles)", at) - at);
  CHECK(named.find("bf16") != std::string::npos);
  CHECK(named.find("fp8") == std::string::npos);
}

TEST_CASE("each published run of a model whose config is here is reproduced to 1 %") {
  const std::map<std::string, std::string> configs = {{"Qwen3-30B-A3B", "qwen3-30b-a3b"},
                                                      {"Qwen3 MoE 30B", "qwen3-30b-a3b"},
                                                      {"Qwen3_30B_a3B", "qwen3-30b-a3b"},
                                                      {"Qwen3 Next-80B-A3B", "qwen3-next-80b-a3b"},
                                                      {"Llama 3.1 8B", "llama-3.1-8b"},
                                                      {"Llama 3 8B", "llama-3.1-8b"},
                                                      {"LLAMA3_8B", "llama-3.1-8b"},
                                                      {"DeepSeek-V3 671B", "deepseek-v3"},
                                                      {"DeepSeek V3 671B", "deepseek-v3"},
                                                      {"DeepSeekV3", "deepseek-v3"},
                                                      {"deepseek-v3", "deepseek-v3"},
                                                      {"Kimi K2", "kimi-k2"},
                                                      {"GPT-OSS 20B", "gpt-oss-20b"},
                                                      {"GPT-OSS 120B", "gpt-oss-120b"},
                                                      {"GPT OSS 120B", "gpt-oss-120b"},
                                                      {"gpt-oss-120b", "gpt-oss-120b"},
                                                      {"Llama4 Maverick 400b", "llama-4-maverick"}};
  int compared = 0;
  for (const PublishedSteps& row : scenario::published_steps()) {
    const auto config = configs.find(row.model);
    const std::optional<double> rate = scenario::tokens_per_s_per_gpu(row);
    if (config == configs.end() || !rate || scenario::peak_flops(row) == 0) continue;
    CAPTURE(row.id);
    scenario::ReadOptions options;
    options.overrides = {
        "model.hf_config=" + source_dir() + "/experiments/models/" + config->second + ".json",
        fmt::format("model.sequence_length={}", row.sequence_length.value_or(4096)),
        "strategy.method=ddp",
        "strategy.expert_overlap=2",
        "compute.gpus_per_site=8",
        "compute.profile=published:" + row.id};
    const costmodel::Scenario s = scenario::read_scenario(kTwoSites, options);
    const costmodel::RunReport report = costmodel::closed_form(s);
    const double tokens_a_round =
        static_cast<double>(report.tokens) / static_cast<double>(report.round.count);
    CHECK(tokens_a_round / (16 * report.round.compute_s) == Approx(*rate).epsilon(0.01));
    ++compared;
  }
  CHECK(compared >= 25);
}

TEST_CASE("an answer without a measured step time names the MFU of comparable published runs") {
  const Ran ran = run_in(source_dir(), "fomoe simulate experiments/scenarios/four-regions.toml");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(ran.out.find("The step time was not measured. The 5 published runs closest to this model") !=
        std::string::npos);
  const Ran listed =
      run_in(source_dir(), "fomoe list profiles --near experiments/scenarios/four-regions.toml");
  REQUIRE_MESSAGE(listed.exit_status == 0, listed.err);
  // The closest run to Qwen3-30B-A3B trained that model.
  const std::string first = listed.out.substr(listed.out.find('\n') + 1);
  CHECK(first.substr(0, first.find('\n')).find("qwen3") != std::string::npos);
}
