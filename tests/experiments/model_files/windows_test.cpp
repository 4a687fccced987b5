// Which layers of a config.json see only a window or a chunk of the sequence, by the rules of the library
// `transformers`.
#include <doctest/doctest.h>

#include <string>

#include "experiments/files/model_shape_json.hpp"
#include "experiments/json/json.hpp"
#include "experiments/model_files/hf_config.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using costmodel::ModelShape;
using scenario::Json;

namespace {

ModelShape with_window(const Folder& folder, const std::string& type, Json changes) {
  Json config = {{"model_type", type},       {"hidden_size", 64},
                 {"intermediate_size", 96},  {"num_hidden_layers", 8},
                 {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                 {"vocab_size", 100},        {"tie_word_embeddings", false},
                 {"sliding_window", 16},     {"max_window_layers", 5}};
  if (type.ends_with("moe") || type == "dots1") {
    config["num_experts"] = config["n_routed_experts"] = 8;
    config["num_experts_per_tok"] = 2;
    config["moe_intermediate_size"] = config["shared_expert_intermediate_size"] = 32;
    config["n_shared_experts"] = 1;
    config["first_k_dense_replace"] = 0;
  }
  config.update(changes);
  write_all(folder / "c.json", config.dump());
  return scenario::read_hf_config(folder / "c.json");
}

}  // namespace

TEST_CASE("architectures whose window is switched on: the rules of the library for the layers that have it") {
  const Folder folder;
  const Json on = {{"use_sliding_window", true}};
  struct Case {
    const char* type;
    std::int64_t layers;  // of 8, with max_window_layers = 5
  };
  // Layers 5, 6 and 7; of Qwen2-MoE layers 0, 2 and 4; all; and the fourth and the eighth, which are not
  // rotated.
  for (const auto& [type, layers] :
       {Case{"qwen2", 3}, Case{"qwen2_vl_text", 3}, Case{"qwen2_5_vl_text", 3}, Case{"qwen3", 3},
        Case{"qwen2_moe", 3}, Case{"qwen3_moe", 8}, Case{"smollm3", 2}, Case{"qwen3_vl_text", 0}}) {
    CAPTURE(type);
    const ModelShape shape = with_window(folder, type, on);
    CHECK(shape.window_layers == layers);
    CHECK(shape.window_tokens == (layers > 0 ? 16 : 0));
    CHECK(with_window(folder, type, {{"use_sliding_window", false}}).window_layers == 0);
    CHECK(with_window(folder, type, Json::object()).window_layers == 0);
    CHECK(with_window(folder, type, {{"use_sliding_window", true}, {"sliding_window", nullptr}})
              .window_layers == 0);
  }
  CHECK(with_window(folder, "dots1", Json::object()).window_layers == 3);
  CHECK(
      with_window(folder, "qwen2", {{"use_sliding_window", true}, {"max_window_layers", 28}}).window_layers ==
      0);
  Json listed = on;
  listed["layer_types"] = Json::array();
  for (int i = 0; i < 8; ++i)
    listed["layer_types"].push_back(i == 2 ? "sliding_attention" : "full_attention");
  CHECK(with_window(folder, "qwen2", listed).window_layers == 1);
}

TEST_CASE("the chunks of Llama 4 are no sliding windows, also in a file of the shape") {
  const Folder folder;
  const ModelShape shape = with_window(folder, "llama4_text",
                                       {{"num_local_experts", 4},
                                        {"num_experts_per_tok", 1},
                                        {"intermediate_size_mlp", 48},
                                        {"interleave_moe_layer_step", 1},
                                        {"attention_chunk_size", 16}});
  CHECK(shape.chunked);
  CHECK(shape.window_layers == 6);
  const Json json = scenario::exact_shape_json(shape);
  CHECK(scenario::read_exact_shape("m.json", {}, json, 0) == shape);
  CHECK_FALSE(with_window(folder, "mistral", Json::object()).chunked);
}
