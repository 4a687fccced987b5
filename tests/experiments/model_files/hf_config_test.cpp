// Tests of models that are read from a Hugging Face config.json: published totals and active counts, and the
// messages about wrong files.
#include "experiments/model_files/hf_config.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>

#include "experiments/json/json.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/whole_file.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using costmodel::ModelShape;
using scenario::Json;

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

/// Reads the config from a file; with `modules`, its multi-token-prediction modules as well.
ModelShape read(const Folder& folder, Json config, int modules = 0) {
  if (modules > 0) config["num_nextn_predict_layers"] = modules;
  write_all(folder / "c.json", config.dump());
  return scenario::read_hf_config(folder / "c.json", {.multi_token_prediction = modules > 0});
}

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

TEST_CASE("total and active parameters of each architecture agree with the published ones") {
  const std::string path =
      std::string(FOMOE_SOURCE_DIR) + "/tests/experiments/model_files/architectures.json";
  const Json rows = Json::parse(*whole_file(path));
  const Folder folder;
  std::set<std::string> types, with_experts;
  for (const Json& row : rows) {
    const std::string name = row["name"], type = row["config"]["model_type"];
    CAPTURE(name);
    types.insert(type);
    const ModelShape shape = read(folder, row["config"]);
    const costmodel::ParameterCounts counts = count_parameters(shape);
    // Exactly as many parameters as the library `transformers` builds (compare_with_transformers.py).
    CHECK(counts.total() == row["total"].get<std::int64_t>());
    CHECK(counts.expert == row["experts"].get<std::int64_t>());
    if (shape.experts > 0) with_experts.insert(type);
    if (!row.contains("published")) continue;
    const Json& published = row["published"];
    const auto agrees = [&](double counted, const char* which) {
      const double figure = published[which][0], tolerance = published[which][1];
      CHECK_MESSAGE(std::abs(counted / 1e9 - figure) <= tolerance + 1e-9, which, " ", counted, " ", figure);
    };
    if (published.contains("total")) agrees(static_cast<double>(counts.total()), "total");
    if (!published.contains("active")) continue;
    // Publishers count both embedding tables as active, or only the unembedding, or none.
    auto active = active_parameters(shape, published["tables"] == 2);
    if (published["tables"] == 0) active -= shape.vocabulary * shape.d_model;
    agrees(static_cast<double>(active), "active");
  }
  CHECK(types.size() >= 45);
  CHECK(with_experts.size() >= 30);
}

TEST_CASE("every architecture of the table is compared, or is another name of one that is") {
  const std::string path =
      std::string(FOMOE_SOURCE_DIR) + "/tests/experiments/model_files/architectures.json";
  // The language models of these, or models of the same shape, are compared. "git" is how Grok-2 calls
  // itself.
  std::set<std::string> compared = {"llama4",         "qwen3_5_moe", "qwen3_5", "minimax_text_01",
                                    "bailing_moe_v2", "step3_vl",    "kimi_vl", "ernie4_5_moe_vl",
                                    "mistral",        "grok"};
  for (const Json& row : Json::parse(*whole_file(path))) {
    const Json& config = row["config"];
    if (config["model_type"] != "git") compared.insert(config["model_type"]);
    if (config.contains("text_config")) compared.insert(config["text_config"]["model_type"]);
  }
  for (const std::string& type : scenario::hf_model_types()) {
    CAPTURE(type);
    CHECK(compared.contains(type));
  }
  CHECK(compared.size() == scenario::hf_model_types().size());
}

TEST_CASE("the README says how many architectures are read") {
  const std::string count = std::to_string(scenario::hf_model_types().size());
  for (const char* page : {"/README.md", "/experiments/models/README.md"}) {
    CAPTURE(page);
    const std::string text = *whole_file(std::string(FOMOE_SOURCE_DIR) + page);
    const bool stated = text.find(count + " architectures that are read") != std::string::npos ||
                        text.find(count + " that `fomoe list models` lists") != std::string::npos;
    CHECK(stated);
  }
}

TEST_CASE("a config with an image encoder has the language model in an object of its own") {
  const Folder folder;
  Json inner = {{"hidden_size", 64},           {"num_hidden_layers", 4},
                {"num_attention_heads", 4},    {"num_key_value_heads", 2},
                {"vocab_size", 100},           {"intermediate_size", 32},
                {"intermediate_size_mlp", 48}, {"num_local_experts", 8},
                {"num_experts_per_tok", 1},    {"interleave_moe_layer_step", 2}};
  const ModelShape nested = read(folder, {{"model_type", "llama4"}, {"text_config", inner}});
  inner["model_type"] = "llama4_text";
  CHECK(count_parameters(nested).total() == count_parameters(read(folder, inner)).total());
  CHECK(nested.moe_layer_list.empty() == false);
  CHECK(costmodel::layer_of_moe_layer(nested, 0) == 1);
  CHECK(costmodel::layer_of_moe_layer(nested, 1) == 3);
  write_all(folder / "c.json", "{\n\"model_type\": \"llama4\",\n\"text_config\": {\n\"hidden_size\": 0}}\n");
  CHECK_THROWS_WITH_AS(
      (void)scenario::read_hf_config(folder / "c.json"),
      ((folder / "c.json") + ":4: hidden_size: got 0; expected a whole number from 1 to 100000000; "
                             "for example \"hidden_size\": 64")
          .c_str(),
      FileError);
}

TEST_CASE("linear attention is found by the kinds of the layers, by an interval, and by an older list") {
  const Folder folder;
  Json config = {
      {"model_type", "minimax"},
      {"hidden_size", 64},
      {"num_hidden_layers", 4},
      {"num_attention_heads", 4},
      {"num_key_value_heads", 4},
      {"vocab_size", 100},
      {"intermediate_size", 32},
      {"num_local_experts", 8},
      {"num_experts_per_tok", 2},
      {"layer_types", {"linear_attention", "linear_attention", "linear_attention", "full_attention"}}};
  CHECK(read(folder, config).linear->layers == 3);
  config.erase("layer_types");
  config["attn_type_list"] = {0, 0, 0, 1};
  config["model_type"] = "minimax_text_01";
  CHECK(read(folder, config).linear->layers == 3);
  config["attn_type_list"] = {0, 1};
  write_all(folder / "c.json", config.dump());
  CHECK_THROWS_WITH_AS((void)scenario::read_hf_config(folder / "c.json"),
                       doctest::Contains("attn_type_list: got [0,1]; expected a list of 4 kinds"), FileError);
}

TEST_CASE("names of newer versions of the library, and numbers that only Python writes") {
  const Folder folder;
  Json config = {
      {"model_type", "kimi_linear"},
      {"hidden_size", 64},
      {"num_hidden_layers", 4},
      {"num_attention_heads", 4},
      {"vocab_size", 100},
      {"intermediate_size", 48},
      {"moe_intermediate_size", 16},
      {"kv_lora_rank", 8},
      {"qk_nope_head_dim", 6},
      {"qk_rope_head_dim", 2},
      {"v_head_dim", 6},
      {"first_k_dense_replace", 1},
      {"num_experts", 8},
      {"num_experts_per_token", 2},
      {"num_shared_experts", 1},
      {"linear_attn_config",
       {{"kda_layers", {1, 2, 3}}, {"num_heads", 4}, {"head_dim", 6}, {"short_conv_kernel_size", 4}}}};
  const ModelShape older = read(folder, config);
  for (const char* name :
       {"num_experts", "num_experts_per_token", "num_shared_experts", "linear_attn_config"})
    config.erase(name);
  config.update(
      Json{{"num_local_experts", 8},
           {"num_experts_per_tok", 2},
           {"n_shared_experts", 1},
           {"linear_num_heads", 4},
           {"linear_head_dim", 6},
           {"linear_conv_kernel_dim", 4},
           {"layer_types", {"linear_attention", "linear_attention", "linear_attention", "full_attention"}}});
  const ModelShape newer = read(folder, config);
  CHECK(older == newer);
  std::string text = config.dump();
  text.insert(
      1,
      "\"_name_or_path\": \"C:\\\\models\\\\\", \"time_step_limit\": [-Infinity, Infinity], \"scale\": NaN, "
      "\"note\": \"a \\\" and NaN\", ");
  write_all(folder / "c.json", text);
  CHECK(scenario::read_hf_config(folder / "c.json") == newer);
}

TEST_CASE("experts in other than all layers after the dense ones") {
  const Folder folder;
  Json config = {{"model_type", "qwen3_moe"},   {"hidden_size", 64}, {"num_hidden_layers", 5},
                 {"num_attention_heads", 4},    {"vocab_size", 100}, {"intermediate_size", 48},
                 {"moe_intermediate_size", 16}, {"num_experts", 8},  {"num_experts_per_tok", 2},
                 {"mlp_only_layers", {0, 1}}};
  CHECK(read(folder, config).dense_layers == 2);
  CHECK(read(folder, config).moe_layer_list.empty());
  config["mlp_only_layers"] = {1, 4};
  CHECK(read(folder, config).moe_layer_list == std::vector<std::int64_t>{0, 2, 3});
  config["mlp_only_layers"] = Json::array();
  config["decoder_sparse_step"] = 2;
  const ModelShape shape = read(folder, config);
  CHECK(shape.moe_layer_list == std::vector<std::int64_t>{1, 3});
  CHECK(count_parameters(shape).dense_ffn == 3 * 3 * 64 * 48);
  CHECK(count_parameters(shape).expert == 2 * 8 * 3 * 64 * 16);
}

TEST_CASE("multi-token prediction: one more layer with experts, a projection and three norms") {
  const Folder folder;
  const std::string path = std::string(FOMOE_SOURCE_DIR) + "/experiments/models/deepseek-v3.json";
  Json config = Json::parse(*whole_file(path));
  const ModelShape without = read(folder, config);
  config.erase("num_nextn_predict_layers");
  write_all(folder / "c.json", config.dump());
  CHECK_THROWS_WITH_AS((void)scenario::read_hf_config(folder / "c.json", {.multi_token_prediction = true}),
                       doctest::Contains("num_nextn_predict_layers: got nothing"), FileError);
  const ModelShape with = read(folder, config, 1);
  const std::int64_t d = 7168;
  const costmodel::ParameterCounts more = count_parameters(with), less = count_parameters(without);
  CHECK(more.expert - less.expert == 256 * 3 * d * 2048);
  CHECK(more.dense_ffn - less.dense_ffn == 3 * d * 2048 + 2 * d * d);
  CHECK(more.norm - less.norm == 5 * d + 1536 + 512);
  // The technical report's repository: the module has 11.5B parameters beside the shared tables.
  CHECK(static_cast<double>(more.total() - less.total()) / 1e9 == doctest::Approx(11.5).epsilon(0.01));
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
      fmt::format("one of the {} names that `fomoe list models` lists", scenario::hf_model_types().size());
  CHECK(complaint("\"mixtral\"", "\"mixtral\"") == "accepted");
  const std::string misspelled = complaint("\"mixtral\"", "\"mixtrall\"");
  CHECK(
      misspelled.starts_with(":2: model_type: got \"mixtrall\"; expected " + types + ", or one of the two "));
  CHECK(misspelled.find("did you mean") == std::string::npos);  // it may be another architecture
  CHECK(complaint("\"model_type\": \"mixtral\",", "") ==
        ":1: model_type: got nothing; expected " + types + "; for example \"model_type\": \"mixtral\"");
  const std::string count = "; expected a whole number from 1 to 100000000; for example ";
  CHECK(complaint("\"num_local_experts\": 8", "\"num_local_experts\": null") ==
        ":7: num_local_experts: got null" + count + "\"num_local_experts\": 64");
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
  CHECK(complaint("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 100001") ==
        ":3: num_hidden_layers: got 100001; expected a whole number from 1 to 100000; for example "
        "\"num_hidden_layers\": 48");
  CHECK(complaint("{", "[").starts_with(":1: model.hf_config: got text that is not a JSON object"));
}

TEST_CASE(
    "every shipped model works in a scenario: full replicas for all, partial ones for those with experts") {
  const Folder folder;
  for (const char* name : {"mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3", "olmoe-1b-7b", "gpt-oss-120b",
                           "gpt-oss-20b", "llama-3.1-8b", "qwen3-8b", "qwen3-next-80b-a3b", "glm-4.5-air",
                           "kimi-k2", "llama-4-maverick", "minimax-text-01", "nemotron-3-nano-30b-a3b"}) {
    CAPTURE(name);
    write_all(
        folder / "s.toml",
        "[model]\nhf_config = \"" + std::string(FOMOE_SOURCE_DIR) + "/experiments/models/" + name +
            ".json\"\nsequence_length = 4096\n[workload]\ntokens = 1e9\nglobal_batch_sequences = 256\n"
            "[strategy]\nmethod = \"diloco\"\nlocal_steps = 64\nexpert_overlap = 2\n[compute]\nstep_time "
            "= \"1s\"\n[platform]\nsites = 4\nbandwidth = \"10Gbps\"\nlatency = \"10ms\"\n");
    const Ran full = run_in(folder.path(), "fomoe cost s.toml --output -");
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
