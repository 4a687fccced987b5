// Tests of configs that omit fields, that contain encoders beside the language model, or whose architecture
// has no row.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "costmodel/model/flops.hpp"
#include "experiments/json/json.hpp"
#include "experiments/model_files/hf_config.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using costmodel::ModelShape;
using scenario::GuessedModel;
using scenario::Json;

namespace {

GuessedModel guessed(const Folder& folder, const Json& config) {
  write_all(folder / "c.json", config.dump());
  return scenario::read_hf_model(folder / "c.json");
}

std::string notes(const GuessedModel& model) {
  std::string text;
  for (const Provenance& note : model.notes) {
    CHECK(note.origin == Origin::assumed);
    text += note.detail + '\n';
  }
  return text;
}

std::string refusal(const Folder& folder, const Json& config) {
  try {
    (void)guessed(folder, config);
  } catch (const FileError& error) {
    return error.what();
  }
  return "accepted";
}

// Gemma-2-2B without its key and value heads.
Json gemma2() {
  return {{"model_type", "gemma2"},     {"hidden_size", 2304},      {"intermediate_size", 9216},
          {"num_hidden_layers", 26},    {"num_attention_heads", 8}, {"head_dim", 256},
          {"vocab_size", 256000},       {"sliding_window", 4096},   {"attention_bias", false},
          {"tie_word_embeddings", true}};
}

/// Qwen3-VL's fields, with a small language model.
Json with_images() {
  return {{"model_type", "qwen3_vl_moe"},
          {"text_config",
           {{"model_type", "qwen3_vl_moe_text"},
            {"hidden_size", 64},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"head_dim", 16},
            {"vocab_size", 100},
            {"num_experts", 8},
            {"num_experts_per_tok", 2},
            {"moe_intermediate_size", 32},
            {"attention_bias", false},
            {"decoder_sparse_step", 1}}},
          {"vision_config", {{"hidden_size", 1152}, {"depth", 27}}}};
}

}  // namespace

TEST_CASE("an omitted field has the library's default, and the answer says so") {
  const Folder folder;
  const GuessedModel model = guessed(folder, gemma2());
  CHECK(model.shape.kv_heads == 4);  // not as many as the 8 heads
  CHECK(count_parameters(model.shape).total() == 2'614'341'888);
  CHECK(notes(model) ==
        "num_key_value_heads = 4, the default of transformers 5.24.0 for gemma2, because the config "
        "does not state it\n");
  Json stated = gemma2();
  stated["num_key_value_heads"] = 4;
  CHECK(guessed(folder, stated).shape == model.shape);
  CHECK(guessed(folder, stated).notes.empty());
  // A null is stated, and the library makes as many as heads of it.
  stated["num_key_value_heads"] = nullptr;
  CHECK(guessed(folder, stated).shape.kv_heads == 8);
}

TEST_CASE("a default that contradicts a stated value is named in the message") {
  const Folder folder;
  Json config = gemma2();
  config["num_attention_heads"] = 6;
  CHECK(
      refusal(folder, config)
          .find(
              ":1: num_key_value_heads: got nothing, so that it has the default 4 of transformers 5.24.0 for "
              "gemma2; expected a divisor of num_attention_heads = 6; for example \"num_key_value_heads\": "
              "6") != std::string::npos);
  config["num_key_value_heads"] = 6;  // what the message proposes
  CHECK(refusal(folder, config) == "accepted");
}

TEST_CASE("an architecture without known defaults must state what they would decide") {
  const Folder folder;
  Json config = {{"model_type", "grinmoe"},  {"hidden_size", 64},        {"intermediate_size", 32},
                 {"num_hidden_layers", 2},   {"vocab_size", 100},        {"num_attention_heads", 4},
                 {"num_local_experts", 4},   {"num_experts_per_tok", 2}, {"tie_word_embeddings", false},
                 {"num_key_value_heads", 2}, {"attention_bias", true},   {"lm_head_bias", true}};
  CHECK(refusal(folder, config) == "accepted");
  CHECK(guessed(folder, config).notes.empty());
  for (const char* field : {"tie_word_embeddings", "attention_bias", "lm_head_bias", "num_key_value_heads"}) {
    Json rest = config;
    rest.erase(field);
    const std::string message = refusal(folder, rest);
    CHECK(message.find(std::string(":1: ") + field + ": got nothing; expected") != std::string::npos);
    // The example of the message, put into the file.
    const std::size_t example = message.find("for example \"") + 12;
    const std::string text = "{" + message.substr(example, message.find('\n', example) - example) + "}";
    rest.update(Json::parse(text));
    if (std::string_view(field) != "num_key_value_heads") CHECK(refusal(folder, rest) == "accepted");
  }
}

TEST_CASE("Grok-2 is known by its class; its heads must be stated") {
  const Folder folder;
  Json config = {{"model_type", "git"},      {"architectures", {"Grok1ForCausalLM"}},
                 {"hidden_size", 64},        {"vocab_size", 100},
                 {"intermediate_size", 96},  {"moe_intermediate_size", 32},
                 {"num_local_experts", 4},   {"num_experts_per_tok", 2},
                 {"residual_moe", true},     {"num_hidden_layers", 2},
                 {"num_attention_heads", 4}, {"num_key_value_heads", 2}};
  const ModelShape shape = guessed(folder, config).shape;
  CHECK_FALSE(shape.tied_embeddings);
  CHECK(count_parameters(shape).dense_ffn == 2 * 3 * 64 * 96);
  config.erase("num_key_value_heads");
  CHECK(refusal(folder, config).find("num_key_value_heads: got nothing; expected the number of") !=
        std::string::npos);
  config["num_key_value_heads"] = 2;
  config["architectures"] = {"GitForCausalLM"};
  CHECK(refusal(folder, config).find("model_type: got \"git\"") != std::string::npos);
}

TEST_CASE("only the language model of a model with images counts, and a note says what is left out") {
  const Folder folder;
  Json config = with_images();
  config["tie_word_embeddings"] = false;
  const GuessedModel model = guessed(folder, config);
  CHECK(notes(model) == "only the language model, which runs for tokens of text; left out: vision_config\n");
  CHECK(model.shape.architecture == "qwen3_vl_moe");
  // Embedding and unembedding, attention with norms of queries and keys, experts, routers and norms.
  const std::int64_t d = 64, attention = 2 * d * 64 + 2 * d * 32 + 2 * 16, experts = 8 * 3 * d * 32;
  CHECK(count_parameters(model.shape).total() == 2 * 100 * d + 2 * (attention + experts + 8 * d + 2 * d) + d);
  SUBCASE("older files have the fields of the language model outside of an object") {
    Json flat = config["text_config"];
    flat["model_type"] = "qwen3_vl_moe";
    flat["tie_word_embeddings"] = false;
    CHECK(guessed(folder, flat).shape == model.shape);
  }
  SUBCASE("a model of an unknown name whose language model is known") {
    config["model_type"] = "unheard_of";
    for (const char* object : {"llm_config", "language_config"}) {
      Json renamed = config;
      renamed[object] = renamed["text_config"];
      renamed.erase("text_config");
      GuessedModel other = guessed(folder, renamed);
      CHECK(other.shape.architecture == "unheard_of");
      other.shape.architecture = model.shape.architecture;
      CHECK(other.shape == model.shape);
      CHECK(other.notes.size() == model.notes.size());
    }
  }
  SUBCASE("whether the embedding is shared: by the whole model, by the language model, by its default") {
    config["text_config"]["tie_word_embeddings"] = true;
    CHECK_FALSE(guessed(folder, config).shape.tied_embeddings);
    config.erase("tie_word_embeddings");
    CHECK(guessed(folder, config).shape.tied_embeddings);
    config["text_config"].erase("tie_word_embeddings");
    const GuessedModel defaults = guessed(folder, config);
    CHECK(defaults.shape.tied_embeddings);
    CHECK(notes(defaults).find("tie_word_embeddings = true, the default of transformers 5.24.0 for "
                               "qwen3_vl_moe_text") != std::string::npos);
  }
}

TEST_CASE("Mistral 3 contains a language model of one of several architectures") {
  const Folder folder;
  Json text = {{"model_type", "mistral"},  {"hidden_size", 64},        {"num_hidden_layers", 2},
               {"head_dim", 16},           {"num_attention_heads", 4}, {"num_key_value_heads", 2},
               {"vocab_size", 100},        {"intermediate_size", 32},  {"tie_word_embeddings", false},
               {"sliding_window", nullptr}};
  const Json config = {
      {"model_type", "mistral3"}, {"text_config", text}, {"vision_config", {{"hidden_size", 8}}}};
  const ModelShape shape = guessed(folder, config).shape;
  CHECK(count_parameters(shape).total() == 2 * 100 * 64 + 2 * (3 * 64 * 64 + 3 * 64 * 32 + 2 * 64) + 64);
  text["model_type"] = "ministral3";
  CHECK(
      count_parameters(guessed(folder, {{"model_type", "mistral3"}, {"text_config", text}}).shape).total() ==
      count_parameters(shape).total());
  CHECK(refusal(folder, {{"model_type", "mistral3"}})
            .find("text_config: got nothing; expected an object with the fields of the language model") !=
        std::string::npos);
}

TEST_CASE("a known wrapper around a language model of an unknown architecture is refused, and not guessed") {
  const Folder folder;
  const Json text = {{"model_type", "mistral5"},    {"hidden_size", 64},        {"num_hidden_layers", 2},
                     {"num_attention_heads", 4},    {"num_key_value_heads", 2}, {"vocab_size", 100},
                     {"intermediate_size", 32},     {"n_routed_experts", 8},    {"kv_lora_rank", 16},
                     {"tie_word_embeddings", false}};
  for (const char* wrapper : {"mistral3", "gemma3", "qwen3_vl", "kimi_vl"}) {
    CAPTURE(wrapper);
    const std::string message = refusal(folder, {{"model_type", wrapper}, {"text_config", text}});
    CHECK(message.find("text_config.model_type: got \"mistral5\"; expected one of the ") !=
          std::string::npos);
    CHECK(message.find("for example fomoe model ") != std::string::npos);
  }
  // Without a type, or with the wrapper's own, it is the usual one.
  Json plain = text;
  plain["head_dim"] = 16;
  for (const char* type : {"", "qwen3_vl"}) {
    plain["model_type"] = type;
    CHECK(refusal(folder, {{"model_type", "qwen3_vl"}, {"text_config", plain}}) == "accepted");
  }
}

TEST_CASE("the experts for images of ERNIE-VL do not count, in either form of its config") {
  const Folder folder;
  Json config = {{"model_type", "ernie4_5_moe_vl"},
                 {"hidden_size", 64},
                 {"intermediate_size", 96},
                 {"num_hidden_layers", 4},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"vocab_size", 100},
                 {"moe_num_experts", {8, 4}},
                 {"moe_intermediate_size", {32, 16}},
                 {"moe_k", 2},
                 {"moe_num_shared_experts", 2},
                 {"moe_layer_start_index", {1, 1}},
                 {"moe_layer_end_index", {29, 28}},
                 {"use_bias", false},
                 {"tie_word_embeddings", true},
                 {"vision_config", {{"depth", 2}}}};
  const GuessedModel model = guessed(folder, config);
  CHECK(count_parameters(model.shape).expert == 3 * 8 * 3 * 64 * 32);
  CHECK(count_parameters(model.shape).dense_ffn == 3 * 64 * 96 + 3 * 2 * 3 * 64 * 32);
  CHECK(notes(model) ==
        "only the language model, which runs for tokens of text; left out: vision_config and the experts for "
        "images\n");
  for (const char* field : {"moe_layer_start_index", "moe_layer_end_index"}) config.erase(field);
  config["moe_num_experts"] = 8;
  CHECK(guessed(folder, config).shape == model.shape);  // only the first layer is dense
}

TEST_CASE("hybrids without experts: their blocks are dense, and all their parameters are active") {
  const Folder folder;
  Json granite = {{"model_type", "granitemoehybrid"},
                  {"hidden_size", 64},
                  {"intermediate_size", 32},
                  {"shared_intermediate_size", 48},
                  {"num_local_experts", 0},
                  {"num_experts_per_tok", 0},
                  {"num_hidden_layers", 4},
                  {"num_attention_heads", 4},
                  {"num_key_value_heads", 2},
                  {"attention_bias", false},
                  {"layer_types", {"mamba", "mamba", "attention", "mamba"}},
                  {"mamba_n_heads", 8},
                  {"mamba_n_groups", 1},
                  {"mamba_d_state", 16},
                  {"mamba_d_conv", 4},
                  {"mamba_expand", 2},
                  {"mamba_conv_bias", true},
                  {"mamba_proj_bias", false},
                  {"tie_word_embeddings", false},
                  {"vocab_size", 100}};
  const ModelShape shape = guessed(folder, granite).shape;
  CHECK(shape.experts == 0);
  CHECK(count_parameters(shape).dense_ffn == 4 * 3 * 64 * 48);
  CHECK(costmodel::attention_layers(shape) == 1);
  CHECK(active_parameters(shape) == count_parameters(shape).total());
  granite["mamba_d_head"] = 32;  // the library refuses it as well
  CHECK(refusal(folder, granite).find("mamba_d_head: got 32; expected 16, which is") != std::string::npos);
  granite["mamba_d_head"] = "auto";
  // With experts, the publisher's convention decides about the embedding table.
  granite["num_local_experts"] = 4;
  granite["num_experts_per_tok"] = 2;
  CHECK(guessed(folder, granite).shape.experts == 4);
  const Json nemotron = {{"model_type", "nemotron_h"},  {"hybrid_override_pattern", "M-*-"},
                         {"hidden_size", 64},           {"intermediate_size", 32},
                         {"num_hidden_layers", 4},      {"num_attention_heads", 4},
                         {"num_key_value_heads", 2},    {"head_dim", 16},
                         {"vocab_size", 100},           {"n_groups", 1},
                         {"ssm_state_size", 16},        {"mamba_num_heads", 4},
                         {"mamba_head_dim", 16},        {"conv_kernel", 4},
                         {"tie_word_embeddings", false}};
  const ModelShape dense = guessed(folder, nemotron).shape;
  CHECK(active_parameters(dense) == count_parameters(dense).total());
}

TEST_CASE("Jamba: scores only in the layers with attention, states of Mamba in the others") {
  const Folder folder;
  Json config = {{"model_type", "jamba"},    {"hidden_size", 64},
                 {"intermediate_size", 32},  {"num_hidden_layers", 8},
                 {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                 {"vocab_size", 100},        {"num_experts", 4},
                 {"num_experts_per_tok", 2}, {"attn_layer_period", 8},
                 {"attn_layer_offset", 4},   {"expert_layer_period", 2},
                 {"expert_layer_offset", 1}, {"mamba_d_state", 16},
                 {"mamba_d_conv", 4},        {"mamba_expand", 2},
                 {"mamba_dt_rank", "auto"},  {"mamba_conv_bias", true},
                 {"mamba_proj_bias", false}, {"tie_word_embeddings", false}};
  ModelShape shape = guessed(folder, config).shape;
  shape.sequence_length = 1000;
  CHECK(costmodel::attention_layers(shape) == 1);
  CHECK(shape.linear->gate_rank == 4);  // 64 ÷ 16
  // 12·d·s for one layer; seven layers write and read a state of 16 elements for each of 128 channels.
  CHECK(costmodel::full_replica_flops(shape).attention ==
        12.0 * 64 * 1000 + 7 * 6.0 * (2 * 128 * 16 + 128 * 4));
  CHECK(shape.moe_layer_list == std::vector<std::int64_t>{1, 3, 5, 7});
  config["num_experts"] = 1;  // Jamba's name for a dense block
  const ModelShape dense = guessed(folder, config).shape;
  CHECK(dense.experts == 0);
  CHECK(count_parameters(dense).dense_ffn == 8 * 3 * 64 * 32);
  config["attn_layer_offset"] = 8;
  CHECK(refusal(folder, config).find("attn_layer_offset: got 8; expected less than attn_layer_period = 8") !=
        std::string::npos);
}

TEST_CASE("DeepSeek-V4-Flash: attention sees a window and compressed keys") {
  const std::string path =
      std::string(FOMOE_SOURCE_DIR) + "/tests/experiments/model_files/architectures.json";
  const Folder folder;
  for (const Json& row : Json::parse(*whole_file(path))) {
    if (row["name"] != "DeepSeek-V4-Flash") continue;
    ModelShape shape = guessed(folder, row["config"]).shape;
    shape.sequence_length = 65536;
    // 64 heads of 512 elements in 43 layers with a window of 128 tokens; 21 layers see 512 of 16384 keys,
    // which 64 heads of 128 elements have scored, and 20 layers see 512 keys.
    const double seen = 43 * 128.0 + 21 * 512.0 + 20 * 512.0;
    CHECK(costmodel::full_replica_flops(shape).attention ==
          6 * (64 * 2 * 512 * seen + 21.0 * 64 * 128 * 16384));
    // The kinds of the layers by their names give the same model.
    Json named = row["config"];
    named.erase("compress_ratios");
    Json types = Json::array();
    for (const Json& ratio : row["config"]["compress_ratios"])
      types.push_back(ratio == 0   ? "sliding_attention"
                      : ratio == 4 ? "compressed_sparse_attention"
                                   : "heavily_compressed_attention");
    named["layer_types"] = types;
    CHECK(guessed(folder, named).shape == guessed(folder, row["config"]).shape);
  }
}

TEST_CASE("an architecture without a row: the message names two ways, and both work") {
  const Folder folder;
  write_all(folder / "config.json", R"({"model_type": "unheard_of", "num_attention_heads": 2})");
  const std::string header =
      R"({"model.layers.0.self_attn.q_proj.weight": {"dtype": "BF16", "shape": [8, 8],)"
      R"( "data_offsets": [0, 0]}})";
  std::string weights;
  for (int byte = 0; byte < 8; ++byte) weights += static_cast<char>((header.size() >> (8 * byte)) & 0xffU);
  const Ran refused = run_in(folder.path(), "fomoe model config.json");
  CHECK(refused.exit_status == 2);
  CHECK(refused.err.find("config.json:1: model_type: got \"unheard_of\"; expected one of the ") == 0);
  CHECK(refused.err.find("fomoe.model_from_transformers(\"config.json\", \"model.json\")") !=
        std::string::npos);
  const std::size_t example = refused.err.find("for example ");
  REQUIRE(example != std::string::npos);
  const std::string command = refused.err.substr(example + 12, refused.err.find('\n') - example - 12);
  CHECK(command == "fomoe model .");
  write_all(folder / "model.safetensors", weights + header);
  const Ran followed = run_in(folder.path(), command);
  CHECK_MESSAGE(followed.exit_status == 0, followed.err);
  CHECK(followed.out.find("parameters") != std::string::npos);
}
