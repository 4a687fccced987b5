// The table of architectures. Names of fields and defaults are those of the library `transformers`; each row
// was compared with the model that the library builds (tests/experiments/model_files/hf_config_test.cpp).
#include "experiments/model_files/architecture.hpp"

namespace fomoe::scenario {

namespace {

using costmodel::AttentionGate;
using costmodel::QueryKeyNorm;

constexpr Flag kYes{nullptr, true};
constexpr Flag kAttentionBias{"attention_bias", false};

// DeepSeek-V3 (arXiv 2412.19437). The router's bias balances the load.
constexpr Architecture deepseek_v3(const char* model_type) {
  return {.model_type = model_type,
          .experts = "n_routed_experts",
          .shared = "n_shared_experts",
          .dense_first = "first_k_dense_replace",
          .latent = true,
          .router_bias = kYes,
          .embedding_counts_as_active = false,
          .adapt = moe_frequency};
}

constexpr Architecture sparse_deepseek(const char* model_type) {
  Architecture row = deepseek_v3(model_type);
  row.adapt = sparse_indexer;
  return row;
}

// Qwen3-Next and Qwen3.5: gated delta-net layers, and gated attention in every fourth layer.
constexpr Architecture qwen_next(const char* model_type, const char* inside) {
  return {.model_type = model_type,
          .experts = "num_experts",
          .shared_width = "shared_expert_intermediate_size",
          .prediction_modules = "mtp_num_hidden_layers",
          .inside = inside,
          .qkv_bias = kAttentionBias,
          .output_bias = kAttentionBias,
          .query_key_norm = QueryKeyNorm::per_head,
          .attention_gate = AttentionGate::per_element,
          .shared_gate = true,
          .embedding_counts_as_active = false,
          .adapt = gated_delta_net};
}

constexpr Architecture qwen_next_dense(const char* model_type, const char* inside) {
  Architecture row = qwen_next(model_type, inside);
  row.experts = row.shared_width = nullptr;
  row.shared_gate = false;
  return row;
}

// Interleaved MoE layers, and chunks of attention in three of four layers (Llama 4).
constexpr Architecture llama4(const char* model_type, const char* inside) {
  return {.model_type = model_type,
          .experts = "num_local_experts",
          .d_expert = "intermediate_size",
          .d_ffn = "intermediate_size_mlp",
          .prediction_modules = nullptr,
          .inside = inside,
          .qkv_bias = kAttentionBias,
          .output_bias = kAttentionBias,
          .adapt = interleaved_llama};
}

// Gemma 3 (arXiv 2503.19786): five layers with a window for each layer without.
constexpr Architecture gemma3(const char* model_type, const char* inside) {
  return {.model_type = model_type,
          .prediction_modules = nullptr,
          .inside = inside,
          .qkv_bias = kAttentionBias,
          .output_bias = kAttentionBias,
          .query_key_norm = QueryKeyNorm::per_head,
          .head_dim = 256,
          .full_every = 6,
          .norms_per_layer = 4,
          .tied = true};
}

constexpr Architecture granite_moe(const char* model_type) {
  return {.model_type = model_type,
          .experts = "num_local_experts",
          .d_expert = "intermediate_size",
          .prediction_modules = nullptr,
          .qkv_bias = kAttentionBias,
          .output_bias = kAttentionBias};
}

constexpr Architecture granite_moe_shared(const char* model_type, decltype(Architecture::adapt) adapt) {
  Architecture row = granite_moe(model_type);
  row.shared_width = "shared_intermediate_size";
  row.adapt = adapt;
  return row;
}

constexpr Architecture minimax(const char* model_type) {
  return {.model_type = model_type,
          .experts = "num_local_experts",
          .d_expert = "intermediate_size",
          .prediction_modules = nullptr,
          .embedding_counts_as_active = false,
          .adapt = lightning_attention};
}

constexpr Architecture kArchitectures[] = {
    // Mixture of experts
    {.model_type = "mixtral",
     .experts = "num_local_experts",
     .d_expert = "intermediate_size",
     .full_every = kNoLayer},
    {.model_type = "qwen3_moe",
     .experts = "num_experts",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .query_key_norm = QueryKeyNorm::per_head,
     .adapt = sparse_steps},
    {.model_type = "olmoe",
     .experts = "num_experts",
     .d_expert = "intermediate_size",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .query_key_norm = QueryKeyNorm::all_heads},
    deepseek_v3("deepseek_v3"),
    deepseek_v3("kimi_k2"),
    {.model_type = "gpt_oss",
     .experts = "num_local_experts",
     .d_expert = "intermediate_size",
     .qkv_bias = {"attention_bias", true},
     .output_bias = {"attention_bias", true},
     .ffn_bias = kYes,
     .router_bias = kYes,
     .sinks = true,
     .full_every = 2,
     .embedding_counts_as_active = false},
    {.model_type = "deepseek_v2",
     .experts = "n_routed_experts",
     .shared = "n_shared_experts",
     .dense_first = "first_k_dense_replace",
     .latent = true,
     .embedding_counts_as_active = false,
     .adapt = moe_frequency},
    sparse_deepseek("deepseek_v32"),
    sparse_deepseek("glm_moe_dsa"),
    {.model_type = "glm4_moe",
     .experts = "n_routed_experts",
     .shared = "n_shared_experts",
     .dense_first = "first_k_dense_replace",
     .qkv_bias = kAttentionBias,
     .router_bias = kYes,
     .embedding_counts_as_active = false,
     .adapt = optional_head_norm},
    deepseek_v3("glm4_moe_lite"),
    {.model_type = "dots1",
     .experts = "n_routed_experts",
     .shared = "n_shared_experts",
     .dense_first = "first_k_dense_replace",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .router_bias = kYes,
     .query_key_norm = QueryKeyNorm::per_head,
     .adapt = moe_frequency},
    {.model_type = "qwen2_moe",
     .experts = "num_experts",
     .shared_width = "shared_expert_intermediate_size",
     .qkv_bias = {"qkv_bias", true},
     .shared_gate = true,
     .adapt = sparse_steps},
    qwen_next("qwen3_next", nullptr),
    qwen_next("qwen3_5_moe_text", nullptr),
    qwen_next("qwen3_5_moe", "text_config"),
    llama4("llama4_text", nullptr),
    llama4("llama4", "text_config"),
    {.model_type = "ernie4_5_moe",
     .experts = "moe_num_experts",
     .active = "moe_k",
     .qkv_bias = {"use_bias", false},
     .output_bias = {"use_bias", false},
     .ffn_bias = {"use_bias", false},
     .router_bias = kYes,
     .tied = true,
     .embedding_counts_as_active = false,
     .adapt = ernie},
    {.model_type = "hunyuan_v1_moe",
     .experts = "num_experts",
     .active = "moe_topk",
     .d_expert = "intermediate_size",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .query_key_norm = QueryKeyNorm::per_head,
     .adapt = hunyuan},
    minimax("minimax"),
    minimax("minimax_text_01"),
    {.model_type = "minimax_m2",
     .experts = "num_local_experts",
     .d_expert = "intermediate_size",
     .prediction_modules = "num_mtp_modules",
     .router_bias = kYes,
     .query_key_norm = QueryKeyNorm::all_heads,
     .embedding_counts_as_active = false},
    granite_moe("granitemoe"),
    granite_moe_shared("granitemoeshared", nullptr),
    granite_moe_shared("granitemoehybrid", mamba_layers),
    {.model_type = "phimoe",
     .experts = "num_local_experts",
     .d_expert = "intermediate_size",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .norm_bias = true,
     .adapt = head_bias},
    {.model_type = "dbrx", .experts = "moe_num_experts", .read = dbrx},
    {.model_type = "flex_olmo",
     .experts = "num_experts",
     .d_expert = "intermediate_size",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .query_key_norm = QueryKeyNorm::all_heads},
    {.model_type = "lfm2_moe",
     .experts = "num_experts",
     .dense_first = "num_dense_layers",
     .router_bias = {"use_expert_bias", true},
     .query_key_norm = QueryKeyNorm::per_head,
     .tied = true,
     .adapt = short_convolutions},
    {.model_type = "longcat_flash", .experts = "n_routed_experts", .read = longcat_flash},
    {.model_type = "nemotron_h", .experts = "n_routed_experts", .read = nemotron_h},
    {.model_type = "kimi_linear",
     .experts = "num_experts",
     .active = "num_experts_per_token",
     .shared = "num_shared_experts",
     .dense_first = "first_k_dense_replace",
     .latent = true,
     .router_bias = kYes,
     .embedding_counts_as_active = false,
     .adapt = kimi_delta_attention},
    {.model_type = "solar_open",
     .experts = "n_routed_experts",
     .shared = "n_shared_experts",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .router_bias = kYes,
     .adapt = optional_dense_layers},
    {.model_type = "exaone_moe",
     .experts = "num_experts",
     .shared = "num_shared_experts",
     .dense_first = "first_k_dense_replace",
     .router_bias = kYes,
     .query_key_norm = QueryKeyNorm::per_head,
     .full_every = 4,
     .embedding_counts_as_active = false},
    {.model_type = "afmoe",
     .experts = "num_experts",
     .shared = "num_shared_experts",
     .dense_first = "num_dense_layers",
     .router_bias = kYes,
     .query_key_norm = QueryKeyNorm::per_head,
     .attention_gate = AttentionGate::per_element,
     .full_every = 4,
     .norms_per_layer = 4,
     .embedding_counts_as_active = false},
    {.model_type = "axk1",
     .experts = "n_routed_experts",
     .shared = "n_shared_experts",
     .dense_first = "first_k_dense_replace",
     .latent = true,
     .router_bias = kYes,
     .adapt = norm_after_experts},
    {.model_type = "hy_v3",
     .experts = "num_experts",
     .shared = "num_shared_experts",
     .dense_first = "first_k_dense_replace",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .router_bias = kYes,
     .query_key_norm = QueryKeyNorm::per_head},

    // Dense
    {.model_type = "llama",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .ffn_bias = {"mlp_bias", false}},
    {.model_type = "qwen3",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .query_key_norm = QueryKeyNorm::per_head,
     .head_dim = 128},
    {.model_type = "mistral", .full_every = kNoLayer},
    {.model_type = "qwen2", .qkv_bias = kYes},
    qwen_next_dense("qwen3_5_text", nullptr),
    qwen_next_dense("qwen3_5", "text_config"),
    {.model_type = "olmo2",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .query_key_norm = QueryKeyNorm::all_heads},
    {.model_type = "olmo3",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .query_key_norm = QueryKeyNorm::all_heads,
     .full_every = 4},
    {.model_type = "olmo_hybrid",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .query_key_norm = QueryKeyNorm::all_heads,
     .adapt = gated_delta_net},
    {.model_type = "gemma2",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .head_dim = 256,
     .full_every = 2,
     .norms_per_layer = 4,
     .tied = true},
    gemma3("gemma3_text", nullptr),
    gemma3("gemma3", "text_config"),
    {.model_type = "phi3", .full_every = kNoLayer},
    {.model_type = "smollm3",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .ffn_bias = {"mlp_bias", false},
     .tied = true},
    {.model_type = "seed_oss",
     .qkv_bias = {"attention_bias", true},
     .output_bias = {"attention_out_bias", false},
     .ffn_bias = {"mlp_bias", false},
     .head_dim = 128},
    {.model_type = "granite",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .ffn_bias = {"mlp_bias", false}},
    {.model_type = "glm4", .qkv_bias = kAttentionBias, .head_dim = 128, .norms_per_layer = 4},
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

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

}  // namespace fomoe::scenario
