// Tests of models that are read from a Hugging Face config.json: published totals and active counts, and the
// messages about wrong files.
#include "experiments/files/hf_config.hpp"

#include <doctest/doctest.h>

#include <string>

#include "experiments/scenario/scenario_reader.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using costmodel::ModelShape;

namespace {

ModelShape shipped(const std::string& name) {
  return scenario::read_hf_config(std::string(FOMOE_SOURCE_DIR) + "/experiments/models/" + name + ".json");
}

const std::string kMixtral = R"({
  "model_type": "mixtral",
  "hidden_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 4,
  "num_key_value_heads": 2,
  "intermediate_size": 128,
  "num_local_experts": 8,
  "num_experts_per_tok": 2,
  "vocab_size": 100
}
)";

/// Returns the message about the sample config after replacing `from` by `to`, without the folder's name.
std::string complaint(const std::string& from, const std::string& to) {
  const Folder folder;
  std::string text = kMixtral;
  text.replace(text.find(from), from.size(), to);
  write_all(folder / "c.json", text);
  try {
    (void)scenario::read_hf_config(folder / "c.json");
  } catch (const FileError& error) {
    return std::string(error.what()).substr((folder / "c.json").size());
  }
  return "accepted";
}

}  // namespace

TEST_CASE("total and active parameters agree with the published ones to their printed digits") {
  struct Row {
    const char* name;
    double total, total_digit;    // in billions; half of the last printed digit
    double active, active_digit;  // the same; 0 for a dense model
  };
  // Mixtral: Jiang et al. 2024 (47B, 13B), 46.7B and 12.9B in the announcement. Qwen3: Qwen Team 2025,
  // table 2. DeepSeek-V3: arXiv 2412.19437. OLMoE: arXiv 2409.02060, table 1. gpt-oss: model card, table 1.
  const Row rows[] = {
      {"mixtral-8x7b", 46.70, 0.005, 12.9, 0.05},   {"qwen3-30b-a3b", 30.53, 0.005, 3.3, 0.1},
      {"deepseek-v3", 671, 0.5, 37, 0.5},           {"olmoe-1b-7b", 6.92, 0.005, 1.3, 0.05},
      {"gpt-oss-120b", 116.83, 0.005, 5.13, 0.005}, {"gpt-oss-20b", 20.91, 0.005, 3.61, 0.005},
      {"llama-3.1-8b", 8.03, 0.005, 0, 0},          {"qwen3-8b", 8.19, 0.005, 0, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const ModelShape shape = shipped(row.name);
    CHECK(shape.name == row.name);
    const auto total = static_cast<double>(count_parameters(shape).total()) / 1e9;
    CHECK(std::abs(total - row.total) <= row.total_digit);
    const auto active = static_cast<double>(active_parameters(shape)) / 1e9;
    if (row.active > 0) {
      CHECK(std::abs(active - row.active) <= row.active_digit);
    } else {
      CHECK(active == total);
    }
  }
}

TEST_CASE("gpt-oss-120b: the counts by class agree with its model card") {
  const costmodel::ParameterCounts counts = count_parameters(shipped("gpt-oss-120b"));
  // The card has MLP 114.71B (experts and router), attention 0.96B, embedding and unembedding 1.16B.
  CHECK(static_cast<double>(counts.expert + counts.router) == doctest::Approx(114.71e9).epsilon(5e-5));
  CHECK(static_cast<double>(counts.attention) == doctest::Approx(0.96e9).epsilon(6e-3));
  CHECK(static_cast<double>(counts.embedding) == doctest::Approx(1.16e9).epsilon(5e-3));
}

TEST_CASE("DeepSeek-V3 by hand: latent attention, three dense layers, one shared expert") {
  const costmodel::ParameterCounts counts = count_parameters(shipped("deepseek-v3"));
  const std::int64_t d = 7168, heads = 128;
  const std::int64_t queries = d * 1536 + 1536 * heads * (128 + 64);
  const std::int64_t keys_values = d * (512 + 64) + 512 * heads * (128 + 128);
  CHECK(counts.attention == 61 * (queries + keys_values + heads * 128 * d));
  CHECK(counts.dense_ffn == 3 * 3 * d * 18432 + 58 * 3 * d * 2048);
  CHECK(counts.expert == 58LL * 256 * 3 * d * 2048);
  CHECK(counts.router == 58 * 256 * (d + 1));  // with the bias for load balancing
  CHECK(counts.norm == d * (2 * 61 + 1) + 61 * (1536 + 512));
}

TEST_CASE("a wrong config: the message has the file, the field's line, its value and the expected one") {
  const std::string types =
      "one of \"mixtral\", \"qwen3_moe\", \"olmoe\", \"deepseek_v3\", \"gpt_oss\", \"llama\", \"qwen3\"";
  CHECK(complaint("\"mixtral\"", "\"mixtral\"") == "accepted");
  CHECK(complaint("\"mixtral\"", "\"mixtrall\"") ==
        ":2: model_type: got \"mixtrall\"; expected " + types +
            "; for example \"model_type\": \"mixtral\"; did you mean \"mixtral\"?");
  CHECK(complaint("\"model_type\": \"mixtral\",", "") ==
        ":1: model_type: got nothing; expected " + types + "; for example \"model_type\": \"mixtral\"");
  const std::string count = "; expected a whole number from 1 to 100000000; for example ";
  CHECK(complaint("\"num_local_experts\": 8,", "") ==
        ":1: num_local_experts: got nothing" + count + "\"num_local_experts\": 64");
  CHECK(complaint("\"vocab_size\": 100", "\"vocab_size\": \"many\"") ==
        ":9: vocab_size: got \"many\"" + count + "\"vocab_size\": 64");
  CHECK(complaint("\"hidden_size\": 64", "\"hidden_size\": -64") ==
        ":3: hidden_size: got -64" + count + "\"hidden_size\": 64");
  CHECK(complaint("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3") ==
        ":5: num_key_value_heads: got 3; expected a divisor of num_attention_heads = 4; for example "
        "\"num_key_value_heads\": 4");
  CHECK(complaint("\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9") ==
        ":8: num_experts_per_tok: got 9; expected at most num_local_experts = 8; for example "
        "\"num_experts_per_tok\": 2");
  CHECK(complaint("{", "[").starts_with(":1: model.hf_config: got text that is not a JSON object"));
}

TEST_CASE(
    "every shipped model works in a scenario: full replicas for all, partial ones for those with experts") {
  const Folder folder;
  for (const char* name : {"mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3", "olmoe-1b-7b", "gpt-oss-120b",
                           "gpt-oss-20b", "llama-3.1-8b", "qwen3-8b"}) {
    CAPTURE(name);
    write_all(
        folder / "s.toml",
        "[model]\nhf_config = \"" + std::string(FOMOE_SOURCE_DIR) + "/experiments/models/" + name +
            ".json\"\nsequence_length = 4096\n[workload]\ntokens = 1e9\nglobal_batch_sequences = 256\n"
            "[strategy]\nmethod = \"diloco\"\nlocal_steps = 64\nexpert_overlap = 2\n[compute]\nstep_time "
            "= \"1s\"\n[platform]\nsites = 4\nbandwidth = \"10Gbps\"\nlatency = \"10ms\"\n");
    const Ran full = run_in(folder.path(), "fomoe simulate s.toml --rounds 1 --output -");
    CHECK_MESSAGE(full.exit_status == 0, full.err);
    const Ran shared = run_in(folder.path(), "fomoe cost s.toml --set strategy.method=fomoe --output -");
    const bool dense = shipped(name).experts == 0;
    CHECK(shared.exit_status == (dense ? 2 : 0));
    if (dense) {
      CHECK(shared.err ==
            "--set strategy.method=fomoe: strategy.method: got \"fomoe\" for a model without experts; "
            "expected a method that keeps full replicas, or a model with experts; for example method = "
            "\"diloco\"\n");
    }
  }
}
