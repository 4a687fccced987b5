#include "experiments/model_files/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include "experiments/model_files/architecture.hpp"
#include "experiments/model_files/config_reader.hpp"
#include "experiments/model_files/rough_size.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::scenario {
namespace {

using costmodel::ModelShape;

bool is_set(const Flag& flag, const ConfigReader& config) {
  return flag.field != nullptr ? config.yes_no_or(flag.field, flag.fallback) : flag.fallback;
}

void read_heads(ModelShape& shape, const ConfigReader& config, const Architecture& row) {
  shape.heads = config.count("num_attention_heads");
  if (row.latent) {
    shape.latent = costmodel::LatentAttention{config.count_or("q_lora_rank", 0), config.count("kv_lora_rank"),
                                              config.count("qk_nope_head_dim"),
                                              config.count("qk_rope_head_dim"), config.count("v_head_dim")};
    if (config.yes_no_or("attention_bias", false))
      config.refuse("attention_bias", "false, with latent attention", "false");
    return;
  }
  shape.kv_heads = config.has("num_key_value_heads") ? config.count("num_key_value_heads") : shape.heads;
  if (shape.heads % shape.kv_heads != 0) {
    config.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads = {}", shape.heads),
                  std::to_string(shape.heads));
  }
  if (config.has("head_dim")) {
    shape.head_dim = config.count("head_dim");
  } else if (row.head_dim > 0) {
    shape.head_dim = row.head_dim;
  } else if (shape.d_model % shape.heads != 0) {
    config.refuse("head_dim", "head_dim, because hidden_size is not divisible by num_attention_heads", "128");
  }
}

// The unembedding has weights of its own unless the file or the architecture's default says that it shares
// those of the embedding.
ModelShape read_common(const ConfigReader& config, const Architecture& row) {
  ModelShape shape;
  shape.d_model = config.count("hidden_size");
  shape.layers = config.layers("num_hidden_layers");
  read_heads(shape, config, row);
  shape.vocabulary = config.count("vocab_size");
  shape.qkv_bias = is_set(row.qkv_bias, config);
  shape.output_bias = is_set(row.output_bias, config);
  shape.ffn_bias = is_set(row.ffn_bias, config);
  shape.router_bias = row.experts != nullptr && is_set(row.router_bias, config);
  shape.query_key_norm = row.query_key_norm;
  shape.attention_gate = row.attention_gate;
  shape.sinks = row.sinks;
  shape.norm_bias = row.norm_bias;
  shape.gated = row.gated;
  shape.norms_per_layer = row.norms_per_layer;
  shape.outer_norms = 1;
  shape.tied_embeddings = config.yes_no_or("tie_word_embeddings", row.tied);
  shape.embedding_counts_as_active = row.embedding_counts_as_active;
  return shape;
}

// Newer versions of the library that writes the files use the same few names for all architectures.
const char* name_in(const ConfigReader& config, const char* name, std::initializer_list<const char*> others) {
  if (config.has(name)) return name;
  for (const char* other : others) {
    if (config.has(other)) return other;
  }
  return name;
}

void read_experts(ModelShape& shape, const ConfigReader& config, const Architecture& row) {
  const char* experts =
      name_in(config, row.experts, {"num_local_experts", "num_experts", "n_routed_experts"});
  const char* active = name_in(config, row.active, {"num_experts_per_tok"});
  shape.experts = config.count(experts);
  shape.active_experts = config.count_of_all_layers(active);
  if (shape.active_experts > shape.experts)
    config.refuse(active, fmt::format("at most {} = {}", experts, shape.experts), "2");
  shape.d_expert = config.count_of_all_layers(row.d_expert);
  shape.shared_gate = row.shared_gate;
  if (row.shared != nullptr) {
    shape.shared_experts =
        config.count(name_in(config, row.shared, {"n_shared_experts", "num_shared_experts"}), 0);
  }
  if (row.shared_width != nullptr) {
    shape.d_shared = config.count_or(row.shared_width, 0);
    shape.shared_experts = shape.d_shared > 0 ? 1 : 0;
  }
  if (const auto types = config.words("mlp_layer_types")) {
    std::vector<bool> chosen(types->size());
    std::transform(types->begin(), types->end(), chosen.begin(), [](const auto& t) { return t == "sparse"; });
    if (static_cast<std::int64_t>(chosen.size()) != shape.layers)
      config.refuse("mlp_layer_types", fmt::format("a list of {} kinds", shape.layers), "[\"sparse\", …]");
    set_moe_layers(shape, chosen);
  } else if (row.dense_first != nullptr) {
    shape.dense_layers = config.count(row.dense_first, 0);
    if (shape.dense_layers > shape.layers)
      config.refuse(row.dense_first, fmt::format("at most num_hidden_layers = {}", shape.layers), "1");
  }
}

// Layers that see sliding_window tokens: by the types of the layers, or by the architecture's pattern.
void read_window(ModelShape& shape, const ConfigReader& config, const Architecture& row) {
  const std::vector<std::string> types = layer_types(config, shape.layers);
  std::int64_t layers = std::count(types.begin(), types.end(), "sliding_attention");
  if (types.empty() && row.full_every > 0) {
    if (!config.json().contains("sliding_window")) (void)config.count("sliding_window");
    layers = shape.layers - shape.layers / row.full_every;
  }
  if (types.empty() && row.full_every == kNoLayer) layers = shape.layers;
  if (layers == 0 || !config.has("sliding_window")) return;
  shape.window_tokens = config.count("sliding_window");
  shape.window_layers = layers;
}

// DeepSeek-V3, section 2.2: a module is one more layer, like the last one.
void add_prediction_modules(ModelShape& shape, const ConfigReader& config, const Architecture& row) {
  if (row.prediction_modules == nullptr || row.read != nullptr) {
    config.refuse("model_type", "an architecture whose multi-token-prediction modules are known",
                  "\"deepseek_v3\"");
  }
  const std::int64_t modules = config.layers(row.prediction_modules);
  for (std::int64_t i = 0; i < modules; ++i) {
    if (!shape.moe_layer_list.empty()) shape.moe_layer_list.push_back(shape.layers);
    if (shape.experts == 0) ++shape.dense_layers;
    ++shape.layers;
  }
  shape.prediction_modules = modules;
}

ModelShape read_model(const ConfigReader& config, const Architecture& row, const HfOptions& options) {
  ModelShape shape = row.read != nullptr ? row.read(config) : read_common(config, row);
  if (row.read == nullptr) {
    shape.dense_layers = row.experts == nullptr ? shape.layers : 0;
    if (row.experts != nullptr) read_experts(shape, config, row);
    read_window(shape, config, row);
    if (row.adapt != nullptr) row.adapt(shape, config);
  }
  if (options.multi_token_prediction) add_prediction_modules(shape, config, row);
  if (row.read == nullptr && costmodel::dense_ffn_layers(shape) > 0) shape.d_ffn = config.count(row.d_ffn);
  if (shape.active_experts > shape.experts)
    config.refuse(row.active, fmt::format("at most {} = {}", row.experts, shape.experts), "2");
  if (!(rough_parameters(shape) <= kMostModelParameters))
    config.refuse("hidden_size", "a model of at most 1e16 parameters", "4096");
  return shape;
}

}  // namespace

std::vector<std::string> hf_model_types() {
  std::vector<std::string> names;
  for (const Architecture& row : architectures()) names.emplace_back(row.model_type);
  return names;
}

std::vector<std::string> hf_model_types(bool with_experts) {
  std::vector<std::string> names;
  for (const Architecture& row : architectures()) {
    if ((row.experts != nullptr) == with_experts) names.emplace_back(row.model_type);
  }
  return names;
}

ModelShape read_hf_config(const std::string& path, const HfOptions& options) {
  const ConfigReader config(path);
  const std::string expected = "one of \"" + joined(hf_model_types(), "\", \"") + '"';
  const std::string model_type = config.text("model_type", expected, "\"mixtral\"");
  const auto rows = architectures();
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const Architecture& a) { return a.model_type == model_type; });
  if (found == rows.end()) {
    const std::string meant = nearest(model_type, hf_model_types());
    config.refuse("model_type", expected, "\"mixtral\"", meant.empty() ? "" : '"' + meant + '"');
  }
  ModelShape shape =
      read_model(found->inside != nullptr ? config.inside(found->inside) : config, *found, options);
  shape.architecture = model_type;
  const std::filesystem::path file = std::filesystem::absolute(path);
  shape.name =
      file.filename() == "config.json" ? file.parent_path().filename().string() : file.stem().string();
  return shape;
}

}  // namespace fomoe::scenario
