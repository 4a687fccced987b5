// Architectures whose configs have fields of their own throughout.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/model_files/architecture.hpp"

namespace fomoe::scenario {

using costmodel::ModelShape;

ModelShape dbrx(const ConfigReader& config) {
  const ConfigReader attention = config.inside("attn_config"), experts = config.inside("ffn_config");
  ModelShape shape;
  shape.d_model = config.count("d_model");
  shape.layers = config.layers("n_layers");
  shape.heads = config.count("n_heads");
  shape.vocabulary = config.count("vocab_size");
  shape.kv_heads = attention.count("kv_n_heads");
  if (shape.d_model % shape.heads != 0)
    config.refuse("n_heads", fmt::format("a divisor of d_model = {}", shape.d_model), "48");
  shape.experts = experts.count("moe_num_experts");
  shape.active_experts = experts.count("moe_top_k");
  shape.d_expert = experts.count("ffn_hidden_size");
  shape.gated = true;
  shape.tied_embeddings = config.yes_no_or("tie_word_embeddings", false);
  shape.norms_per_layer = 2;
  shape.outer_norms = 1;
  return shape;
}

// LongCat-Flash (arXiv 2509.01322): each of num_layers blocks has two layers of attention with a dense
// feed-forward block, and experts beside the first of the two. Here these are two layers, of which the first
// has experts, and the dense block as an expert that every token uses. A token chooses moe_topk of the
// experts and of the identity experts, and is taken to choose both kinds in proportion to their numbers.
ModelShape longcat_flash(const ConfigReader& config) {
  ModelShape shape;
  shape.d_model = config.count("hidden_size");
  const std::int64_t blocks = config.layers("num_layers");
  shape.layers = 2 * blocks;
  shape.heads = config.count("num_attention_heads");
  shape.vocabulary = config.count("vocab_size");
  shape.latent = costmodel::LatentAttention{config.count_or("q_lora_rank", 0), config.count("kv_lora_rank"),
                                            config.count("qk_nope_head_dim"),
                                            config.count("qk_rope_head_dim"), config.count("v_head_dim")};
  shape.experts = config.count("n_routed_experts");
  shape.identity_experts = config.count_or("zero_expert_num", 0);
  const std::int64_t chosen = config.count("moe_topk");
  shape.active_experts =
      std::max<std::int64_t>(1, (chosen * shape.experts + (shape.experts + shape.identity_experts) / 2) /
                                    (shape.experts + shape.identity_experts));
  shape.d_expert = config.count("expert_ffn_hidden_size");
  for (std::int64_t block = 0; block < blocks; ++block) shape.moe_layer_list.push_back(2 * block);
  shape.d_ffn = shape.d_shared = config.count("ffn_hidden_size");
  shape.shared_experts = 1;
  shape.gated = shape.router_bias = true;
  shape.tied_embeddings = config.yes_no_or("tie_word_embeddings", false);
  shape.norms_per_layer = 2;
  shape.outer_norms = 1;
  return shape;
}

// Nemotron-H (arXiv 2504.03624): each layer is one block with one norm: Mamba-2 (M), attention (*), a dense
// feed-forward block (-) or experts (E). The feed-forward blocks have no gate.
ModelShape nemotron_h(const ConfigReader& config) {
  ModelShape shape;
  std::string pattern;
  if (config.has("hybrid_override_pattern")) {
    pattern = config.text("hybrid_override_pattern", "the letters M, *, - and E", "\"ME*E\"");
  } else if (const auto types = config.words("layers_block_type")) {
    for (const std::string& type : *types) {
      const bool mamba = type == "mamba" || type == "linear_attention";
      const bool attention = type == "attention" || type == "full_attention";
      pattern += mamba ? 'M' : attention ? '*' : type == "mlp" ? '-' : type == "moe" ? 'E' : '?';
    }
  }
  const char* field = config.has("layers_block_type") ? "layers_block_type" : "hybrid_override_pattern";
  if (pattern.empty() || pattern.find_first_not_of("M*-E") != std::string::npos)
    config.refuse(field, "the kind of each layer: M, *, - or E", "\"ME*E\"");
  shape.d_model = config.count("hidden_size");
  shape.layers = static_cast<std::int64_t>(pattern.size());
  if (config.has("num_hidden_layers") && config.count("num_hidden_layers") != shape.layers)
    config.refuse("num_hidden_layers", fmt::format("{}, as {} says", shape.layers, field), "52");
  shape.heads = config.count("num_attention_heads");
  shape.kv_heads = config.count("num_key_value_heads");
  if (shape.heads % shape.kv_heads != 0)
    config.refuse("num_key_value_heads", fmt::format("a divisor of {}", shape.heads), "2");
  shape.head_dim = config.count("head_dim");
  shape.vocabulary = config.count("vocab_size");
  const auto layers_of = [&](char kind) { return std::count(pattern.begin(), pattern.end(), kind); };
  shape.linear = costmodel::LinearAttention{.kind = costmodel::LinearKind::mamba2,
                                            .layers = layers_of('M'),
                                            .key_heads = config.count("n_groups"),
                                            .key_dim = config.count("ssm_state_size"),
                                            .value_heads = config.count("mamba_num_heads"),
                                            .value_dim = config.count("mamba_head_dim"),
                                            .kernel = config.count("conv_kernel")};
  shape.layers_without_attention = layers_of('-') + layers_of('E');
  shape.layers_without_ffn = layers_of('M') + layers_of('*');
  if (layers_of('-') > 0) shape.d_ffn = config.count("intermediate_size");
  if (layers_of('E') == 0) shape.dense_layers = shape.layers;
  if (layers_of('E') > 0) {
    shape.experts = config.count("n_routed_experts");
    shape.active_experts = config.count("num_experts_per_tok");
    shape.d_expert = config.count("moe_intermediate_size");
    shape.shared_experts = config.count("n_shared_experts", 0);
    if (shape.shared_experts > 0) shape.d_shared = config.count("moe_shared_expert_intermediate_size");
    if (config.has("moe_latent_size"))
      config.refuse("moe_latent_size", "no experts behind a projection to a latent", "null");
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] == 'E') shape.moe_layer_list.push_back(static_cast<std::int64_t>(i));
    }
  }
  for (const char* bias : {"attention_bias", "mlp_bias", "use_bias", "mamba_proj_bias"}) {
    if (config.yes_no_or(bias, false)) config.refuse(bias, "false", "false");
  }
  if (!config.yes_no_or("use_conv_bias", true)) config.refuse("use_conv_bias", "true", "true");
  shape.router_bias = true;
  shape.embedding_counts_as_active = false;
  shape.tied_embeddings = config.yes_no_or("tie_word_embeddings", false);
  shape.norms_per_layer = 1;
  shape.outer_norms = 1;
  return shape;
}

}  // namespace fomoe::scenario
