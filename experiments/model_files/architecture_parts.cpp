// The properties of architectures that a row of the table cannot describe.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/model_files/architecture.hpp"

namespace fomoe::scenario {

namespace {

using costmodel::LinearAttention;
using costmodel::LinearKind;
using costmodel::ModelShape;

bool is_linear(const std::string& type) {
  return type == "linear_attention" || type == "mamba" || type == "conv" || type == "0";
}

// The number of layers with linear attention: by the types of the layers, or all but every n-th layer if
// `interval` names a field with n.
std::int64_t linear_layers(const ModelShape& shape, const ConfigReader& config, const char* interval,
                           std::int64_t usual) {
  const std::vector<std::string> types = layer_types(config, shape.layers);
  if (!types.empty()) return std::count_if(types.begin(), types.end(), is_linear);
  if (interval == nullptr)
    config.refuse("layer_types", "the kinds of the layers", "[\"linear_attention\", \"full_attention\", …]");
  const std::int64_t every = config.count_or(interval, usual);
  return shape.layers - (every > 0 ? shape.layers / every : 0);
}

}  // namespace

std::vector<std::string> layer_types(const ConfigReader& config, std::int64_t layers) {
  std::vector<std::string> types;
  const char* field = "layer_types";
  for (const char* name : {"layer_types", "layers_block_type"}) {
    if (!types.empty() || !config.has(name)) continue;
    types = *config.words(name);
    field = name;
  }
  if (types.empty()) {
    if (const auto kinds = config.numbers("attn_type_list", 1)) {
      field = "attn_type_list";
      for (const std::int64_t kind : *kinds) types.push_back(std::to_string(kind));
    }
  }
  if (!types.empty() && static_cast<std::int64_t>(types.size()) != layers)
    config.refuse(field, fmt::format("a list of {} kinds, one for each layer", layers), "[…]");
  return types;
}

// A config states use_sliding_window = false beside a window that the library then ignores.
std::int64_t layers_by_rule(WindowRule rule, const ConfigReader& config, std::int64_t layers,
                            const std::vector<std::string>& types) {
  const bool chosen = config.states("use_sliding_window") && config.yes_no_or("use_sliding_window", false);
  if (rule != WindowRule::late_always && !chosen) return 0;
  if (!types.empty()) return std::count(types.begin(), types.end(), "sliding_attention");
  if (rule == WindowRule::all) return layers;
  if (rule == WindowRule::not_rotated) {
    if (const auto rotated = config.numbers("no_rope_layers", 1); rotated && !rotated->empty())
      return std::count(rotated->begin(), rotated->end(), 0);
    const std::int64_t every = config.count_or("no_rope_layer_interval", 4);
    return every > 0 ? layers / every : 0;
  }
  const std::int64_t limit = config.count("max_window_layers", 0);
  if (rule == WindowRule::even) return (std::min(limit, layers) + 1) / 2;
  return std::max<std::int64_t>(0, layers - limit);
}

void set_moe_layers(ModelShape& shape, const std::vector<bool>& chosen) {
  shape.moe_layer_list.clear();
  shape.dense_layers = 0;
  const auto first = std::find(chosen.begin(), chosen.end(), true);
  if (std::find(first, chosen.end(), false) == chosen.end()) {
    shape.dense_layers = first - chosen.begin();  // all layers after the dense ones
    return;
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) shape.moe_layer_list.push_back(static_cast<std::int64_t>(i));
  }
}

// Qwen: every n-th layer has experts, except those of a list.
void sparse_steps(ModelShape& shape, const ConfigReader& config) {
  const std::int64_t step = config.has("decoder_sparse_step") ? config.count("decoder_sparse_step") : 1;
  const auto dense =
      config.numbers("mlp_only_layers", shape.layers - 1).value_or(std::vector<std::int64_t>{});
  std::vector<bool> chosen;
  for (std::int64_t i = 0; i < shape.layers; ++i)
    chosen.push_back((i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end());
  set_moe_layers(shape, chosen);
}

// DeepSeek: every n-th layer has experts, counted from the first layer, after the dense layers.
void moe_frequency(ModelShape& shape, const ConfigReader& config) {
  const std::int64_t step = config.has("moe_layer_freq") ? config.count("moe_layer_freq") : 1;
  if (step == 1) return;
  std::vector<bool> chosen;
  for (std::int64_t i = 0; i < shape.layers; ++i) chosen.push_back(i >= shape.dense_layers && i % step == 0);
  set_moe_layers(shape, chosen);
}

void sparse_indexer(ModelShape& shape, const ConfigReader& config) {
  moe_frequency(shape, config);
  shape.indexer = costmodel::SparseIndexer{config.count("index_n_heads"), config.count("index_head_dim"),
                                           config.count("index_topk")};
  if (shape.latent->query_rank == 0)
    config.refuse("q_lora_rank", "a rank, because the indexer reads the latent of the queries", "1536");
}

void gated_delta_net(ModelShape& shape, const ConfigReader& config) {
  if (shape.experts > 0) sparse_steps(shape, config);
  shape.linear = LinearAttention{.kind = LinearKind::gated_delta,
                                 .layers = linear_layers(shape, config, "full_attention_interval", 4),
                                 .key_heads = config.count("linear_num_key_heads"),
                                 .key_dim = config.count("linear_key_head_dim"),
                                 .value_heads = config.count("linear_num_value_heads"),
                                 .value_dim = config.count("linear_value_head_dim"),
                                 .kernel = config.count("linear_conv_kernel_dim")};
}

// The configs state the numbers of the linear layers in an object of their own; newer ones do not.
void kimi_delta_attention(ModelShape& shape, const ConfigReader& config) {
  moe_frequency(shape, config);
  if (!config.has("linear_attn_config") && config.has("linear_num_heads")) {
    const std::int64_t heads = config.count("linear_num_heads"), dim = config.count("linear_head_dim");
    shape.linear = LinearAttention{LinearKind::kimi_delta,
                                   linear_layers(shape, config, nullptr, 0),
                                   heads,
                                   dim,
                                   heads,
                                   dim,
                                   config.count("linear_conv_kernel_dim"),
                                   dim};
    return;
  }
  const ConfigReader linear = config.inside("linear_attn_config");
  const std::int64_t heads = linear.count("num_heads"), dim = linear.count("head_dim");
  const auto layers = linear.numbers("kda_layers", shape.layers);  // counted from 1
  if (!layers) linear.refuse("kda_layers", "the layers with linear attention, counted from 1", "[1, 2, 3]");
  shape.linear = LinearAttention{.kind = LinearKind::kimi_delta,
                                 .layers = static_cast<std::int64_t>(layers->size()),
                                 .key_heads = heads,
                                 .key_dim = dim,
                                 .value_heads = heads,
                                 .value_dim = dim,
                                 .kernel = linear.count("short_conv_kernel_size"),
                                 .gate_rank = dim};
}

void lightning_attention(ModelShape& shape, const ConfigReader& config) {
  const std::int64_t dim = costmodel::query_key_dim(shape);
  shape.linear = LinearAttention{.kind = LinearKind::lightning,
                                 .layers = linear_layers(shape, config, nullptr, 0),
                                 .key_heads = shape.heads,
                                 .key_dim = dim,
                                 .value_heads = shape.heads,
                                 .value_dim = dim};
}

void short_convolutions(ModelShape& shape, const ConfigReader& config) {
  if (config.yes_no_or("conv_bias", false)) config.refuse("conv_bias", "false", "false");
  std::int64_t layers = 0;
  if (const auto full = config.numbers("full_attn_idxs", shape.layers - 1)) {
    layers = shape.layers - static_cast<std::int64_t>(full->size());
  } else {
    layers = linear_layers(shape, config, nullptr, 0);
  }
  shape.linear = LinearAttention{
      .kind = LinearKind::short_convolution, .layers = layers, .kernel = config.count("conv_L_cache")};
}

void mamba_layers(ModelShape& shape, const ConfigReader& config) {
  if (!config.yes_no_or("mamba_conv_bias", true)) config.refuse("mamba_conv_bias", "true", "true");
  if (config.yes_no_or("mamba_proj_bias", false)) config.refuse("mamba_proj_bias", "false", "false");
  const std::int64_t heads = config.count("mamba_n_heads");
  const std::int64_t width = config.count("mamba_expand") * shape.d_model;
  if (width % heads != 0)
    config.refuse("mamba_n_heads", fmt::format("a divisor of mamba_expand · hidden_size = {}", width), "64");
  // "auto" stands for this quotient.
  const std::string quotient = std::to_string(width / heads);
  if (config.states("mamba_d_head") && config.json()["mamba_d_head"].is_number_integer() &&
      config.count("mamba_d_head") != width / heads)
    config.refuse("mamba_d_head", quotient + ", which is mamba_expand · hidden_size ÷ mamba_n_heads",
                  quotient);
  shape.linear = LinearAttention{.kind = LinearKind::mamba2,
                                 .layers = linear_layers(shape, config, nullptr, 0),
                                 .key_heads = config.count("mamba_n_groups"),
                                 .key_dim = config.count("mamba_d_state"),
                                 .value_heads = heads,
                                 .value_dim = width / heads,
                                 .kernel = config.count("mamba_d_conv")};
}

void interleaved_llama(ModelShape& shape, const ConfigReader& config) {
  const std::int64_t step =
      config.has("interleave_moe_layer_step") ? config.count("interleave_moe_layer_step") : 1;
  std::vector<bool> chosen;
  for (std::int64_t i = 0; i < shape.layers; ++i) chosen.push_back((i + 1) % step == 0);
  if (const auto listed = config.numbers("moe_layers", shape.layers - 1); listed && !listed->empty()) {
    std::fill(chosen.begin(), chosen.end(), false);
    for (const std::int64_t layer : *listed) chosen[static_cast<std::size_t>(layer)] = true;
  }
  set_moe_layers(shape, chosen);
  shape.shared_experts = 1;
  if (!config.has("attention_chunk_size")) return;
  // The layers without rotary embedding see the whole sequence; the others see their chunk.
  shape.window_tokens = config.count("attention_chunk_size");
  shape.chunked = true;
  const std::int64_t every = config.count_or("no_rope_layer_interval", 4);
  std::int64_t full = every > 0 ? shape.layers / every : 0;
  const auto rotated = config.numbers("no_rope_layers", 1);  // 1: with rotary embedding
  if (rotated && !rotated->empty()) full = std::count(rotated->begin(), rotated->end(), 0);
  const std::vector<std::string> types = layer_types(config, shape.layers);
  if (!types.empty()) full = std::count(types.begin(), types.end(), "full_attention");
  shape.window_layers = shape.layers - full;
}

void ernie(ModelShape& shape, const ConfigReader& config) {
  const std::int64_t interval = std::max<std::int64_t>(1, config.count_or("moe_layer_interval", 1));
  const std::int64_t start = config.first_count("moe_layer_start_index", 0);
  // −1 stands for the last layer.
  std::int64_t end = config.has("moe_layer_end_index") ? config.first_count("moe_layer_end_index", -1) : -1;
  if (end < 0) end = shape.layers - 1;
  std::vector<bool> chosen;
  for (std::int64_t i = 0; i < shape.layers; ++i)
    chosen.push_back((i + 1) % interval == 0 && i >= start && i <= end);
  set_moe_layers(shape, chosen);
  shape.shared_experts = config.count_or("moe_num_shared_experts", 0);
}

// The library builds one shared expert, whatever num_shared_expert says.
void hunyuan(ModelShape& shape, const ConfigReader& config) {
  shape.shared_experts = 1;
  if (config.has("num_shared_expert") && config.count_of_all_layers("num_shared_expert", 0) != 1)
    config.refuse("num_shared_expert", "1", "1");
  if (config.has("moe_intermediate_size") &&
      config.count_of_all_layers("moe_intermediate_size") != shape.d_expert)
    config.refuse("moe_intermediate_size", fmt::format("intermediate_size = {}", shape.d_expert), "3072");
}

void head_bias(ModelShape& shape, const ConfigReader& config) {
  if (config.yes_no_or("lm_head_bias", false)) shape.other_parameters = shape.vocabulary;
}

void optional_head_norm(ModelShape& shape, const ConfigReader& config) {
  if (config.yes_no_or("use_qk_norm", false)) shape.query_key_norm = costmodel::QueryKeyNorm::per_head;
}

void optional_dense_layers(ModelShape& shape, const ConfigReader& config) {
  shape.dense_layers = config.count_or("first_k_dense_replace", shape.dense_layers);
  if (shape.dense_layers > shape.layers)
    config.refuse("first_k_dense_replace", fmt::format("at most num_hidden_layers = {}", shape.layers), "1");
}

void norm_after_experts(ModelShape& shape, const ConfigReader& config) {
  moe_frequency(shape, config);
  shape.other_parameters = costmodel::moe_layers(shape) * shape.d_model;
}

}  // namespace fomoe::scenario
