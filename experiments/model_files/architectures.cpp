// The table of architectures with experts, and of their dense relatives. Names of fields and defaults are
// those of the library `transformers`; each row was compared with the model that the library builds
// (tests/experiments/model_files/architectures_test.cpp).
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
constexpr Architecture qwen_next(const char* model_type) {
  return {.model_type = model_type,
          .experts = "num_experts",
          .shared_width = "shared_expert_intermediate_size",
          .prediction_modules = "mtp_num_hidden_layers",
          .qkv_bias = kAttentionBias,
          .output_bias = kAttentionBias,
          .query_key_norm = QueryKeyNorm::per_head,
          .attention_gate = AttentionGate::per_element,
          .shared_gate = true,
          .embedding_counts_as_active = false,
          .adapt = gated_delta_net};
}

constexpr Architecture qwen_next_dense(const char* model_type) {
  Architecture row = qwen_next(model_type);
  row.experts = row.shared_width = nullptr;
  row.shared_gate = false;
  return row;
}

// Interleaved MoE layers, and chunks of attention in three of four layers (Llama 4).
constexpr Architecture llama4(const char* model_type) {
  return {.model_type = model_type,
          .experts = "num_local_experts",
          .d_expert = "intermediate_size",
          .d_ffn = "intermediate_size_mlp",
          .prediction_modules = nullptr,
          .qkv_bias = kAttentionBias,
          .output_bias = kAttentionBias,
          .adapt = interleaved_llama};
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
  if (adapt != nullptr) row.width_without_experts = row.shared_width;
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

constexpr Architecture qwen3_moe(const char* model_type, WindowRule window_rule) {
  return {.model_type = model_type,
          .experts = "num_experts",
          .qkv_bias = kAttentionBias,
          .output_bias = kAttentionBias,
          .query_key_norm = QueryKeyNorm::per_head,
          .window_rule = window_rule,
          .adapt = sparse_steps};
}

constexpr Architecture glm4_moe(const char* model_type, decltype(Architecture::adapt) adapt) {
  return {.model_type = model_type,
          .experts = "n_routed_experts",
          .shared = "n_shared_experts",
          .dense_first = "first_k_dense_replace",
          .qkv_bias = kAttentionBias,
          .router_bias = kYes,
          .embedding_counts_as_active = false,
          .adapt = adapt};
}

constexpr Architecture ernie_moe(const char* model_type) {
  return {.model_type = model_type,
          .experts = "moe_num_experts",
          .active = "moe_k",
          .qkv_bias = {"use_bias", false},
          .output_bias = {"use_bias", false},
          .ffn_bias = {"use_bias", false},
          .router_bias = kYes,
          .tied = true,
          .embedding_counts_as_active = false,
          .adapt = ernie};
}

constexpr Architecture ernie_with_image_experts(const char* model_type) {
  Architecture row = ernie_moe(model_type);
  row.for_images = true;
  row.adapt = ernie_with_images;
  return row;
}

constexpr Architecture phi_moe(const char* model_type) {
  return {.model_type = model_type,
          .experts = "num_local_experts",
          .d_expert = "intermediate_size",
          .prediction_modules = nullptr,
          .qkv_bias = kAttentionBias,
          .output_bias = kAttentionBias,
          .norm_bias = true,
          .adapt = head_bias};
}

// Ling and Ring (arXiv 2503.05139 and 2510.22115): version 1 has shared experts beside all experts; version 2
// has dense layers first, norms on queries and keys, and a bias of the router.
constexpr Architecture bailing_moe(const char* model_type) {
  return {.model_type = model_type,
          .experts = "num_experts",
          .dense_first = "first_k_dense_replace",
          .qkv_bias = {"use_qkv_bias", false},
          .output_bias = {"use_bias", false},
          .adapt = bailing};
}

// Step-3 (arXiv 2507.19427): queries by a latent of share_q_dim elements, and one key for all heads.
constexpr Architecture step3_text(const char* model_type) {
  return {.model_type = model_type,
          .experts = "moe_num_experts",
          .active = "moe_top_k",
          .shared_width = "share_expert_dim",
          .kv_heads = "num_attention_groups",
          .prediction_modules = nullptr,
          .embedding_counts_as_active = false,
          .adapt = step3};
}

constexpr Architecture kMixtures[] = {
    {.model_type = "mixtral",
     .experts = "num_local_experts",
     .d_expert = "intermediate_size",
     .full_every = kNoLayer},
    qwen3_moe("qwen3_moe", WindowRule::all),
    qwen3_moe("qwen3_vl_moe_text", WindowRule::none),
    {.model_type = "olmoe",
     .experts = "num_experts",
     .d_expert = "intermediate_size",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .query_key_norm = QueryKeyNorm::all_heads},
    deepseek_v3("deepseek_v3"),
    // Mistral Small 4: the layers of DeepSeek-V3, whose router has no bias.
    {.model_type = "mistral4",
     .experts = "n_routed_experts",
     .shared = "n_shared_experts",
     .dense_first = "first_k_dense_replace",
     .prediction_modules = nullptr,
     .latent = true},
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
    glm4_moe("glm4_moe", optional_head_norm),
    glm4_moe("glm4v_moe_text", nullptr),
    deepseek_v3("glm4_moe_lite"),
    {.model_type = "dots1",
     .experts = "n_routed_experts",
     .shared = "n_shared_experts",
     .dense_first = "first_k_dense_replace",
     .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias,
     .router_bias = kYes,
     .query_key_norm = QueryKeyNorm::per_head,
     .window_rule = WindowRule::late_always,
     .adapt = moe_frequency},
    {.model_type = "qwen2_moe",
     .experts = "num_experts",
     .shared_width = "shared_expert_intermediate_size",
     .qkv_bias = {"qkv_bias", true},
     .shared_gate = true,
     .window_rule = WindowRule::even,
     .adapt = sparse_steps},
    qwen_next("qwen3_next"),
    qwen_next("qwen3_5_moe_text"),
    llama4("llama4_text"),
    ernie_moe("ernie4_5_moe"),
    ernie_with_image_experts("ernie4_5_vl_moe_text"),
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
    phi_moe("phimoe"),
    phi_moe("grinmoe"),
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
    {.model_type = "deepseek_v4", .experts = "n_routed_experts", .read = deepseek_v4},
    // Jamba (arXiv 2403.19887): Mamba in most layers, experts in every second layer.
    {.model_type = "jamba",
     .experts = "num_experts",
     .width_without_experts = "intermediate_size",
     .experts_of_dense = 1,
     .d_expert = "intermediate_size",
     .prediction_modules = nullptr,
     .adapt = jamba},
    // Snowflake Arctic: a dense block beside the experts, with a norm of its own.
    {.model_type = "arctic",
     .experts = "num_local_experts",
     .d_expert = "intermediate_size",
     .prediction_modules = nullptr,
     .adapt = arctic},
    // Grok-2: four norms, and a dense block beside the experts. The name of its config's own model_type is
    // another model's (kGrok in hf_config.cpp).
    {.model_type = "grok",
     .experts = "num_local_experts",
     .prediction_modules = nullptr,
     .norms_per_layer = 4,
     .adapt = grok},
    bailing_moe("bailing_moe"),
    bailing_moe("bailing_moe_v2"),
    step3_text("step3_text"),
    qwen_next_dense("qwen3_5_text"),
};

}  // namespace

std::span<const Architecture> mixtures() { return kMixtures; }

}  // namespace fomoe::scenario
