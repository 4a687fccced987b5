// Tests of what the names of weights tell: encoders beside the language model, and layers with attention.
#include "experiments/model_files/tensor_names.hpp"

#include <doctest/doctest.h>

#include <string>

#include "experiments/json/json.hpp"
#include "experiments/model_files/weights.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using scenario::GuessedModel;
using scenario::Json;

namespace {

void add(Json& header, const std::string& name, const std::vector<std::int64_t>& shape) {
  header[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {0, 0}}};
}

GuessedModel read(const Folder& folder, const Json& header, const Json& config) {
  const std::string text = header.dump();
  std::string file;
  for (int byte = 0; byte < 8; ++byte) file += static_cast<char>((text.size() >> (8 * byte)) & 0xffU);
  write_all(folder / "model.safetensors", file + text);
  write_all(folder / "config.json", config.dump());
  return scenario::read_weights(folder.path());
}

std::string detail(const GuessedModel& model, const std::string& what, const std::string& part) {
  for (const Provenance& note : model.notes) {
    if (note.what == what && note.detail.find(part) != std::string::npos) return note.detail;
  }
  return "";
}

const Json kUnknown = {{"model_type", "unheard_of"}, {"num_attention_heads", 2}};

/// A table of 20 tokens and four layers of width 8, of which the third projects queries.
Json hybrid(const std::string& state, const std::string& queries = "self_attn.q_proj.weight") {
  Json header = Json::object();
  add(header, "model.embed_tokens.weight", {20, 8});
  for (int layer = 0; layer < 4; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + '.';
    add(header, prefix + "mlp.up_proj.weight", {32, 8});
    add(header, prefix + (layer == 2 ? queries : state), {8, 8});
  }
  return header;
}

}  // namespace

TEST_CASE("tensors of encoders, projectors and models of sound are outside of the language model") {
  for (const char* name :
       {"model.visual.blocks.0.attn.qkv.weight", "vision_tower.encoder.layers.3.mlp.fc1.weight",
        "model.multi_modal_projector.linear_1.weight", "audio_tower.conv1.weight", "mlp1.0.weight",
        "model.connector.modality_projection.proj.weight", "talker.model.layers.0.mlp.up_proj.weight",
        "model.layers.1.mlp.vision_moe.experts.gate_up_proj", "vpm.encoder.layers.0.mlp.fc1.weight",
        "resampler.kv_proj.weight", "projector.layers.0.weight", "model.mm_projector.0.weight"}) {
    CAPTURE(name);
    CHECK(scenario::is_outside_language_model(name));
  }
  for (const char* name : {"model.language_model.layers.0.self_attn.q_proj.weight", "lm_head.weight",
                           "model.embed_tokens.weight", "model.layers.0.mlp.experts.3.up_proj.weight",
                           "model.layers.1.mlp.text_moe.experts.gate_up_proj",
                           "model.layers.0.connector.weight", "transformer.h.0.mlp1.weight"}) {
    CAPTURE(name);
    CHECK_FALSE(scenario::is_outside_language_model(name));
  }
}

TEST_CASE("weights of a model with images: the encoder does not count, and a note says so") {
  const Folder folder;
  Json header = hybrid("self_attn.q_proj.weight");
  const GuessedModel alone = read(folder, header, kUnknown);
  add(header, "model.visual.blocks.0.attn.qkv.weight", {24, 8});
  add(header, "model.visual.blocks.1.attn.qkv.weight", {24, 8});
  add(header, "model.visual.embeddings.weight", {100, 100});  // larger than the table of tokens
  const GuessedModel both = read(folder, header, kUnknown);
  CHECK(both.shape == alone.shape);
  CHECK(detail(both, "model", "left out") ==
        "only the language model, which runs for tokens of text; left out: 10384 parameters in 3 tensors, "
        "such as "
        "model.visual.blocks.0.attn.qkv.weight");
  CHECK(detail(alone, "model", "left out").empty());
  // A folder with nothing else than an encoder is a model of its own.
  Json encoder = Json::object();
  add(encoder, "visual.blocks.0.attn.qkv.weight", {24, 8});
  CHECK(read(folder, encoder, kUnknown).shape.opaque->dense_parameters == 24 * 8);
}

TEST_CASE("weights of a hybrid: attention counts in the layers that project queries") {
  const Folder folder;
  for (const auto& [state, queries] :
       {std::pair("mamba.in_proj.weight", "self_attn.q_proj.weight"),
        std::pair("linear_attn.in_proj_qkvz.weight", "self_attn.q_proj.weight"),
        std::pair("mixer.in_proj.weight", "mixer.q_proj.weight"),
        std::pair("conv.conv.weight", "attention.wq.weight"),
        std::pair("temporal_block.rg_lru.gate", "temporal_block.q_proj.weight"),
        std::pair("mixer.A_log", "attn.Wqkv.weight")}) {
    CAPTURE(state);
    const GuessedModel model = read(folder, hybrid(state, queries), kUnknown);
    CHECK(model.shape.layers_without_attention == 3);
    CHECK(detail(model, "FLOPs of attention", "")
              .find("attention with 2 heads in 1 of 4 layers, by the names of the tensors that project "
                    "queries") == 0);
  }
}

TEST_CASE("weights of a hybrid: a part with queries and a state of fixed size has no attention") {
  const Folder folder;
  Json header = hybrid("self_attn.q_proj.weight");  // all four layers project queries
  CHECK(read(folder, header, kUnknown).shape.layers_without_attention == 0);
  for (const int layer : {0, 1, 3}) {  // Kimi Linear
    const std::string prefix = "model.layers." + std::to_string(layer) + ".self_attn.";
    add(header, prefix + "A_log", {2, 1});
    add(header, prefix + "q_conv1d.weight", {8, 1, 4});
  }
  CHECK(read(folder, header, kUnknown).shape.layers_without_attention == 3);
  // Falcon-H1: attention and a state side by side, in parts of their own.
  Json both = hybrid("self_attn.q_proj.weight");
  for (int layer = 0; layer < 4; ++layer)
    add(both, "model.layers." + std::to_string(layer) + ".mamba.A_log", {2});
  const GuessedModel model = read(folder, both, kUnknown);
  CHECK(model.shape.layers_without_attention == 0);
  CHECK(detail(model, "FLOPs of attention", "products of states of fixed size are not counted") != "");
}

TEST_CASE("weights of a hybrid: the config's kinds of the layers come before the names of tensors") {
  const Folder folder;
  Json config = kUnknown;
  config["layer_types"] = {"linear_attention", "sliding_attention", "full_attention", "linear_attention"};
  config["sliding_window"] = 16;
  const GuessedModel model = read(folder, hybrid("self_attn.q_proj.weight"), config);
  CHECK(model.shape.layers_without_attention == 2);
  CHECK(model.shape.window_layers == 1);
  CHECK(model.shape.window_tokens == 16);
  CHECK(detail(model, "FLOPs of attention", "")
            .find("attention with 2 heads in 2 of 4 layers, as the kinds of the layers in config.json say") ==
        0);
  config["layer_types"] = {"linear_attention", "full_attention"};  // no kind for each layer
  CHECK(read(folder, hybrid("mamba.A_log"), config).shape.layers_without_attention == 3);
  // No name tells of queries or states.
  const GuessedModel silent = read(folder, hybrid("mixing.weight", "mixing.weight"), kUnknown);
  CHECK(silent.shape.layers_without_attention == 0);
  CHECK(detail(silent, "FLOPs of attention", "as no name tells otherwise") != "");
}

TEST_CASE("weights with experts for images: those of text count") {
  const Folder folder;
  Json config = kUnknown;
  config.update(Json{{"moe_num_experts", {2, 3}}, {"moe_k", 1}});
  Json header = Json::object();
  add(header, "model.embed_tokens.weight", {20, 8});
  for (int expert = 0; expert < 5; ++expert)
    add(header, "model.layers.0.mlp.experts." + std::to_string(expert) + ".up_proj.weight",
        {expert < 2 ? 6 : 3, 8});
  add(header, "model.layers.0.mlp.gate.weight", {8, 2});
  add(header, "model.layers.0.mlp.gate.weight_1", {8, 3});
  const GuessedModel model = read(folder, header, config);
  CHECK(model.shape.experts == 2);
  CHECK(model.shape.opaque->expert_parameters == 2 * 6 * 8);
  CHECK(model.shape.opaque->dense_parameters == 20 * 8 + 8 * 2);
}

TEST_CASE("weights: trained scales of residual streams are parameters, and those of number formats are not") {
  const Folder folder;
  Json header = hybrid("self_attn.q_proj.weight");
  const std::int64_t before = read(folder, header, kUnknown).shape.opaque->dense_parameters;
  add(header, "model.layers.0.altup.correct_output_scale", {8});
  add(header, "model.hc_head.hc_scale", {1});
  add(header, "model.layers.1.mlp.up_proj", {2, 8});
  add(header, "model.layers.1.mlp.up_proj_scale", {2, 1});
  add(header, "model.layers.0.hc_attn_scale", {3});
  add(header, "model.layers.0.self_attn.q_proj.weight_scale", {1});
  header["model.layers.0.mlp.up_proj.scale"] = {
      {"dtype", "F8_E8M0"}, {"shape", {4, 4}}, {"data_offsets", {0, 0}}};
  CHECK(read(folder, header, kUnknown).shape.opaque->dense_parameters == before + 8 + 1 + 3 + 2 * 8);
}
