// The table of dense architectures: see architectures.cpp.
#include "experiments/model_files/architecture.hpp"

namespace fomoe::scenario {

namespace {

using costmodel::QueryKeyNorm;

constexpr Flag kBiased{nullptr, true};
constexpr Flag kMayBeBiased{"attention_bias", false};

// Gemma 3 (arXiv 2503.19786): five layers with a window for each layer without.
constexpr Architecture gemma3(const char* model_type) {
  return {.model_type = model_type,
          .prediction_modules = nullptr,
          .qkv_bias = kMayBeBiased,
          .output_bias = kMayBeBiased,
          .query_key_norm = QueryKeyNorm::per_head,
          .full_every = 6,
          .norms_per_layer = 4,
          .tied = true};
}

constexpr Architecture qwen3(const char* model_type, WindowRule window_rule) {
  return {.model_type = model_type,
          .qkv_bias = kMayBeBiased,
          .output_bias = kMayBeBiased,
          .query_key_norm = QueryKeyNorm::per_head,
          .window_rule = window_rule};
}

constexpr Architecture kDense[] = {
    {.model_type = "llama",
     .qkv_bias = kMayBeBiased,
     .output_bias = kMayBeBiased,
     .ffn_bias = {"mlp_bias", false}},
    qwen3("qwen3", WindowRule::late),
    qwen3("qwen3_vl_text", WindowRule::none),
    {.model_type = "mistral", .full_every = kNoLayer},
    {.model_type = "ministral3", .full_every = kNoLayer},
    {.model_type = "qwen2", .qkv_bias = kBiased, .window_rule = WindowRule::late},
    {.model_type = "qwen2_vl_text", .qkv_bias = kBiased, .window_rule = WindowRule::late},
    {.model_type = "qwen2_5_vl_text", .qkv_bias = kBiased, .window_rule = WindowRule::late},
    {.model_type = "olmo2",
     .qkv_bias = kMayBeBiased,
     .output_bias = kMayBeBiased,
     .query_key_norm = QueryKeyNorm::all_heads},
    {.model_type = "olmo3",
     .qkv_bias = kMayBeBiased,
     .output_bias = kMayBeBiased,
     .query_key_norm = QueryKeyNorm::all_heads,
     .full_every = 4},
    {.model_type = "olmo_hybrid",
     .qkv_bias = kMayBeBiased,
     .output_bias = kMayBeBiased,
     .query_key_norm = QueryKeyNorm::all_heads,
     .adapt = gated_delta_net},
    {.model_type = "gemma2",
     .qkv_bias = kMayBeBiased,
     .output_bias = kMayBeBiased,
     .full_every = 2,
     .norms_per_layer = 4,
     .tied = true},
    gemma3("gemma3_text"),
    {.model_type = "phi3", .full_every = kNoLayer},
    {.model_type = "smollm3",
     .qkv_bias = kMayBeBiased,
     .output_bias = kMayBeBiased,
     .ffn_bias = {"mlp_bias", false},
     .window_rule = WindowRule::not_rotated,
     .tied = true},
    {
        .model_type = "seed_oss",
        .qkv_bias = {"attention_bias", true},
        .output_bias = {"attention_out_bias", false},
        .ffn_bias = {"mlp_bias", false},
    },
    {.model_type = "granite",
     .qkv_bias = kMayBeBiased,
     .output_bias = kMayBeBiased,
     .ffn_bias = {"mlp_bias", false}},
    {.model_type = "glm4", .qkv_bias = kMayBeBiased, .norms_per_layer = 4},
    {.model_type = "glm4v_text", .qkv_bias = kBiased, .norms_per_layer = 4},
    {.model_type = "exaone4", .query_key_norm = QueryKeyNorm::per_head, .full_every = 4},
    {.model_type = "starcoder2",
     .qkv_bias = {"use_bias", true},
     .output_bias = {"use_bias", true},
     .ffn_bias = {"use_bias", true},
     .norm_bias = true,
     .gated = false,
     .full_every = kNoLayer,
     .tied = true},
};

// Their language models are described by a row of one of the two tables. A model of another name whose
// language model has a row is read in the same way.
constexpr Wrapper kWrappers[] = {
    {"llama4", "text_config", "llama4_text"},
    {"gemma3", "text_config", "gemma3_text"},
    {"qwen3_5_moe", "text_config", "qwen3_5_moe_text"},
    {"qwen3_5", "text_config", "qwen3_5_text"},
    {"mistral3", "text_config", "mistral"},  // also around ministral3 and mistral4
    {"qwen2_vl", "text_config", "qwen2_vl_text"},
    {"qwen2_5_vl", "text_config", "qwen2_5_vl_text"},
    {"qwen3_vl", "text_config", "qwen3_vl_text"},
    {"qwen3_vl_moe", "text_config", "qwen3_vl_moe_text"},
    {"glm4v", "text_config", "glm4v_text"},
    {"glm4v_moe", "text_config", "glm4v_moe_text"},
    {"ernie4_5_vl_moe", "text_config", "ernie4_5_vl_moe_text"},
    {"ernie4_5_moe_vl", "text_config", "ernie4_5_vl_moe_text"},
    {"step3_vl", "text_config", "step3_text"},
    {"kimi_vl", "text_config", "deepseek_v3"},
};

}  // namespace

std::span<const Architecture> dense_architectures() { return kDense; }

std::span<const Wrapper> wrappers() { return kWrappers; }

std::vector<Architecture> architectures() {
  std::vector<Architecture> all(mixtures().begin(), mixtures().end());
  all.insert(all.end(), dense_architectures().begin(), dense_architectures().end());
  return all;
}

}  // namespace fomoe::scenario
