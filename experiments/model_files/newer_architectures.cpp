// The properties of architectures of 2024 and later that a row of the table cannot describe.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "experiments/model_files/architecture.hpp"

namespace fomoe::scenario {

namespace {

using costmodel::CompressedAttention;
using costmodel::LinearAttention;
using costmodel::LinearKind;
using costmodel::ModelShape;

// One of `period` layers, the one at `offset`.
std::vector<bool> periodic(const ConfigReader& config, std::int64_t layers, const char* period,
                           const char* offset) {
  const std::int64_t every = config.count(period), first = config.count(offset, 0);
  if (first >= every) config.refuse(offset, fmt::format("less than {} = {}", period, every), "1");
  std::vector<bool> chosen;
  for (std::int64_t i = 0; i < layers; ++i) chosen.push_back(i % every == first);
  return chosen;
}

std::int64_t count_of(const std::vector<bool>& chosen) {
  return std::count(chosen.begin(), chosen.end(), true);
}

// Whether the config's list of class names has one that contains `part`.
bool architecture_contains(const ConfigReader& config, const std::string& part) {
  if (!config.has("architectures")) return false;
  const std::vector<std::string> names = *config.words("architectures");
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name.find(part) != std::string::npos; });
}

// "4,5,6", as some files write a list of layers.
std::vector<std::int64_t> layers_of_text(const ConfigReader& config, const std::string& field,
                                         std::int64_t layers) {
  const std::string expected = fmt::format("layers from 0 to {}, such as \"4,5,6\"", layers - 1);
  std::vector<std::int64_t> list;
  std::stringstream text(config.text(field, expected, "\"4,5,6\""));
  for (std::string part; std::getline(text, part, ',');) {
    const bool digits = !part.empty() && part.size() < 7 &&
                        part.find_first_not_of("0123456789 ") == std::string::npos &&
                        part.find_first_of("0123456789") != std::string::npos;
    if (!digits || std::stoll(part) >= layers) config.refuse(field, expected, "\"4,5,6\"");
    list.push_back(std::stoll(part));
  }
  return list;
}

}  // namespace

// Jamba (arXiv 2403.19887): attention in one of attn_layer_period layers, and Mamba in the others.
void jamba(ModelShape& shape, const ConfigReader& config) {
  if (!config.yes_no_or("mamba_conv_bias", true)) config.refuse("mamba_conv_bias", "true", "true");
  if (config.yes_no_or("mamba_proj_bias", false)) config.refuse("mamba_proj_bias", "false", "false");
  const std::vector<std::string> types = layer_types(config, shape.layers);
  const std::int64_t attention =
      types.empty() ? count_of(periodic(config, shape.layers, "attn_layer_period", "attn_layer_offset"))
                    : std::count_if(types.begin(), types.end(), [](const std::string& type) {
                        return type == "attention" || type == "full_attention";
                      });
  const bool automatic = !config.states("mamba_dt_rank") || config.json()["mamba_dt_rank"] == "auto";
  shape.linear =
      LinearAttention{.kind = LinearKind::mamba1,
                      .layers = shape.layers - attention,
                      .key_heads = 1,
                      .key_dim = config.count("mamba_d_state"),
                      .value_heads = 1,
                      .value_dim = config.count("mamba_expand") * shape.d_model,
                      .kernel = config.count("mamba_d_conv"),
                      .gate_rank = automatic ? (shape.d_model + 15) / 16 : config.count("mamba_dt_rank")};
  if (shape.experts > 0)
    set_moe_layers(shape, periodic(config, shape.layers, "expert_layer_period", "expert_layer_offset"));
}

// Snowflake Arctic: every n-th layer has experts, and beside them a dense block as wide as the model.
void arctic(ModelShape& shape, const ConfigReader& config) {
  const std::int64_t every = config.count("moe_layer_frequency");
  std::vector<bool> chosen;
  for (std::int64_t i = 0; i < shape.layers; ++i) chosen.push_back((i + 1) % every == 0);
  set_moe_layers(shape, chosen);
  if (!config.yes_no_or("parallel_attn_mlp_res", false)) return;
  shape.shared_experts = 1;
  shape.d_shared = shape.d_model;
  shape.other_parameters = costmodel::moe_layers(shape) * shape.d_model;  // the norm of that block
}

// The published weights share no embedding, which the config does not say; what else it omits is not known.
void grok(ModelShape& shape, const ConfigReader& config) {
  if (!config.states("num_key_value_heads"))
    config.refuse("num_key_value_heads", "the number of key and value heads", "8");
  if (!config.yes_no_or("residual_moe", false)) return;
  shape.shared_experts = 1;
  shape.d_shared = config.count("intermediate_size");
}

// Both versions have the same model_type. Version 1 has neither norms of queries and keys nor a bias of the
// router; of version 2, the config says.
void bailing(ModelShape& shape, const ConfigReader& config) {
  shape.shared_experts = config.count_or("num_shared_experts", 0);
  if (config.has("moe_shared_expert_intermediate_size"))
    shape.d_shared = config.count("moe_shared_expert_intermediate_size");
  const bool version_1 = architecture_contains(config, "BailingMoeForCausalLM");
  const auto is_on = [&](const char* field) {
    if (!config.has(field) && !version_1)
      config.refuse(field, "true or false, because versions of this architecture differ", "true");
    return config.has(field) && config.yes_no_or(field, false);
  };
  if (is_on("use_qk_norm")) shape.query_key_norm = costmodel::QueryKeyNorm::per_head;
  shape.router_bias = is_on("moe_router_enable_expert_bias");
}

void step3(ModelShape& shape, const ConfigReader& config) {
  shape.query_rank = config.count("share_q_dim");
  std::vector<bool> chosen(static_cast<std::size_t>(shape.layers), false);
  if (!config.has("moe_layers_enum"))
    config.refuse("moe_layers_enum", "the layers that have experts", "\"4,5,6\"");
  const bool text = config.json()["moe_layers_enum"].is_string();
  for (const std::int64_t layer : text ? layers_of_text(config, "moe_layers_enum", shape.layers)
                                       : *config.numbers("moe_layers_enum", shape.layers - 1))
    chosen[static_cast<std::size_t>(layer)] = true;
  set_moe_layers(shape, chosen);
}

// The experts for images do not run for text. Without a list of kinds, only the first layer is dense.
void ernie_with_images(ModelShape& shape, const ConfigReader& config) {
  if (config.has("moe_layer_start_index")) {
    ernie(shape, config);
  } else if (!config.has("mlp_layer_types")) {
    shape.dense_layers = 1;
  }
  shape.shared_experts = config.count_or("moe_num_shared_experts", 0);
}

// DeepSeek-V4: all layers have experts and attention to a window, most of them also to compressed keys. The
// first layers choose their experts by the token itself, without a bias of the router.
ModelShape deepseek_v4(const ConfigReader& config) {
  ModelShape shape;
  shape.d_model = config.count("hidden_size");
  shape.layers = config.layers("num_hidden_layers");
  shape.heads = config.count("num_attention_heads");
  shape.kv_heads = 1;
  if (config.count("num_key_value_heads") != 1) config.refuse("num_key_value_heads", "1", "1");
  shape.head_dim = config.count("head_dim");
  shape.query_rank = config.count("q_lora_rank");
  shape.vocabulary = config.count("vocab_size");
  shape.sinks = shape.gated = true;
  CompressedAttention compressed;
  compressed.output_groups = config.count("o_groups");
  compressed.output_rank = config.count("o_lora_rank");
  if (shape.heads * shape.head_dim % compressed.output_groups != 0)
    config.refuse("o_groups", fmt::format("a divisor of {}", shape.heads * shape.head_dim), "8");
  const auto layers = static_cast<std::size_t>(shape.layers);
  // 0: only the window; otherwise the tokens of a key. The list may go on with prediction modules.
  std::vector<std::int64_t> ratios;
  if (const auto types = config.words("layer_types")) {
    for (const std::string& type : *types)
      ratios.push_back(type == "compressed_sparse_attention" ? 4 : type == "sliding_attention" ? 0 : 128);
  } else if (const auto list = config.numbers("compress_ratios", 1'000'000)) {
    ratios = *list;
  }
  if (ratios.size() < layers)
    config.refuse(config.has("layer_types") ? "layer_types" : "compress_ratios",
                  fmt::format("the tokens of a key in each of {} layers: 0, 4 or 128", layers),
                  "[0, 4, 128]");
  ratios.resize(layers);
  for (const std::int64_t ratio : ratios) {
    if (ratio != 0 && ratio != 4 && ratio != 128)
      config.refuse("compress_ratios", "0, 4 or 128", "[0, 4, 128]");
  }
  compressed.sparse_layers = std::count(ratios.begin(), ratios.end(), 4);
  compressed.heavy_layers = std::count(ratios.begin(), ratios.end(), 128);
  compressed.sparse_rate = 4;
  compressed.heavy_rate = 128;
  if (config.has("compress_rates")) {
    const ConfigReader rates = config.inside("compress_rates");
    compressed.sparse_rate = rates.count("compressed_sparse_attention");
    compressed.heavy_rate = rates.count("heavily_compressed_attention");
  }
  shape.compressed = compressed;
  shape.indexer = costmodel::SparseIndexer{config.count("index_n_heads"), config.count("index_head_dim"),
                                           config.count("index_topk")};
  shape.window_tokens = config.count("sliding_window");
  shape.window_layers = shape.layers;
  shape.residual_streams = config.count("hc_mult");
  shape.experts = config.count("n_routed_experts");
  shape.active_experts = config.count("num_experts_per_tok");
  shape.d_expert = config.count("moe_intermediate_size");
  shape.shared_experts = config.count("n_shared_experts", 0);
  std::int64_t hashed = std::min<std::int64_t>(3, shape.layers);
  if (const auto kinds = config.words("mlp_layer_types")) {
    hashed = std::count(kinds->begin(), kinds->end(), "hash_moe");
  } else if (config.has("num_hash_layers")) {
    hashed = config.count("num_hash_layers", 0);
  }
  if (hashed > shape.layers)
    config.refuse("num_hash_layers", fmt::format("at most num_hidden_layers = {}", shape.layers), "3");
  shape.other_parameters = (shape.layers - hashed) * shape.experts;
  for (const char* bias : {"attention_bias", "mlp_bias"}) {
    if (config.yes_no_or(bias, false)) config.refuse(bias, "false", "false");
  }
  shape.tied_embeddings = config.yes_no_or("tie_word_embeddings", false);
  shape.embedding_counts_as_active = false;
  shape.norms_per_layer = 2;
  shape.outer_norms = 1;
  return shape;
}

}  // namespace fomoe::scenario
