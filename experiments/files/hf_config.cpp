#include "experiments/files/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "experiments/json/json.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {
namespace {

using costmodel::ModelShape;

// An upper bound for counts. No model has a larger count. The bound is small enough that the program can
// detect a sum of products of counts that would overflow.
constexpr std::int64_t kMaxValue = 100'000'000;

std::string content_of(const std::string& path) {
  std::optional<std::string> content = whole_file(path);
  if (!content)
    fail(path + ":1", "model.hf_config", "no readable file", "a config.json of Hugging Face",
         "hf_config = \"../models/mixtral-8x7b.json\"");
  return *std::move(content);
}

/// Access to fields by name. A null value counts as absent, as in the library that writes these files.
class ConfigReader {
 public:
  explicit ConfigReader(const std::string& path) : path_(path), text_(content_of(path)) {
    json_ = Json::parse(text_, nullptr, false);
    if (!json_.is_object()) {
      fail(path_ + ":1", "model.hf_config", "text that is not a JSON object", "a config.json of Hugging Face",
           "\"model_type\": \"mixtral\"");
    }
  }

  [[nodiscard]] bool has(const std::string& field) const {
    return json_.contains(field) && !json_[field].is_null();
  }

  [[noreturn]] void refuse(const std::string& field, const std::string& expected, const std::string& example,
                           const std::string& suggestion = "") const {
    const std::string got =
        json_.contains(field) ? json_[field].dump(-1, ' ', false, Json::error_handler_t::replace) : "nothing";
    fail(place(field), field, got, expected, fmt::format("\"{}\": {}", field, example), suggestion);
  }

  [[nodiscard]] std::string text(const std::string& field, const std::string& expected,
                                 const std::string& example) const {
    if (!has(field) || !json_[field].is_string()) refuse(field, expected, example);
    return json_[field].get<std::string>();
  }

  [[nodiscard]] std::int64_t count(const std::string& field, std::int64_t least = 1) const {
    const std::string expected = fmt::format("a whole number from {} to {}", least, kMaxValue);
    if (!has(field) || !json_[field].is_number_integer()) refuse(field, expected, "64");
    const auto value = json_[field].get<std::int64_t>();
    if (value < least || value > kMaxValue) refuse(field, expected, "64");
    return value;
  }
  [[nodiscard]] std::int64_t count_or(const std::string& field, std::int64_t fallback) const {
    return has(field) ? count(field, 0) : fallback;
  }

  [[nodiscard]] bool yes_no_or(const std::string& field, bool fallback) const {
    if (!has(field)) return fallback;
    if (!json_[field].is_boolean()) refuse(field, "true or false", "false");
    return json_[field].get<bool>();
  }

  [[nodiscard]] const Json& json() const { return json_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  /// The line of the field, or line 1 if it is missing.
  [[nodiscard]] std::string place(const std::string& field) const {
    const std::size_t at = text_.find('"' + field + '"');
    const auto end =
        at == std::string::npos ? text_.begin() : text_.begin() + static_cast<std::ptrdiff_t>(at);
    return fmt::format("{}:{}", path_, 1 + std::count(text_.begin(), end, '\n'));
  }

  std::string path_, text_;
  Json json_;
};

// Reads what all supported architectures share: two norms per layer and a final norm, gated feed-forward
// blocks, and groups of heads that share keys and values. The unembedding has weights of its own unless the
// file says that it shares those of the embedding.
ModelShape common(const ConfigReader& config) {
  ModelShape shape;
  shape.d_model = config.count("hidden_size");
  shape.layers = config.count("num_hidden_layers");
  shape.heads = config.count("num_attention_heads");
  shape.vocabulary = config.count("vocab_size");
  shape.kv_heads = config.has("num_key_value_heads") ? config.count("num_key_value_heads") : shape.heads;
  if (shape.heads % shape.kv_heads != 0) {
    config.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads = {}", shape.heads),
                  std::to_string(shape.heads));
  }
  if (config.has("head_dim")) {
    shape.head_dim = config.count("head_dim");
  } else if (shape.d_model % shape.heads != 0) {
    config.refuse("head_dim", "head_dim, because hidden_size is not divisible by num_attention_heads", "128");
  }
  shape.tied_embeddings = config.yes_no_or("tie_word_embeddings", false);
  shape.gated = true;
  shape.norms_per_layer = 2;
  shape.outer_norms = 1;
  return shape;
}

void read_attention_bias(ModelShape& shape, const ConfigReader& config, bool fallback) {
  shape.qkv_bias = shape.output_bias = config.yes_no_or("attention_bias", fallback);
}

void read_dense_only(ModelShape& shape, const ConfigReader& config) {
  shape.dense_layers = shape.layers;
  shape.d_ffn = config.count("intermediate_size");
}

void read_routing(ModelShape& shape, const ConfigReader& config, const char* experts, const char* active) {
  shape.experts = config.count(experts);
  shape.active_experts = config.count(active);
  if (shape.active_experts > shape.experts)
    config.refuse(active, fmt::format("at most {} = {}", experts, shape.experts), "2");
}

ModelShape llama(const ConfigReader& config) {
  ModelShape shape = common(config);
  read_dense_only(shape, config);
  read_attention_bias(shape, config, false);
  shape.ffn_bias = config.yes_no_or("mlp_bias", false);
  return shape;
}

ModelShape qwen3(const ConfigReader& config) {
  ModelShape shape = common(config);
  read_dense_only(shape, config);
  if (shape.head_dim == 0) shape.head_dim = 128;  // this architecture's default, independent of the width
  read_attention_bias(shape, config, false);
  shape.query_key_norm = costmodel::QueryKeyNorm::per_head;
  return shape;
}

ModelShape mixtral(const ConfigReader& config) {
  ModelShape shape = common(config);
  read_routing(shape, config, "num_local_experts", "num_experts_per_tok");
  shape.d_expert = config.count("intermediate_size");
  return shape;
}

ModelShape qwen3_moe(const ConfigReader& config) {
  ModelShape shape = common(config);
  read_routing(shape, config, "num_experts", "num_experts_per_tok");
  shape.d_expert = config.count("moe_intermediate_size");
  read_attention_bias(shape, config, false);
  shape.query_key_norm = costmodel::QueryKeyNorm::per_head;
  if (config.count_or("decoder_sparse_step", 1) != 1)
    config.refuse("decoder_sparse_step", "1 (experts in every layer after the dense layers)", "1");
  if (config.has("mlp_only_layers")) {
    const Json& dense = config.json()["mlp_only_layers"];
    for (std::size_t i = 0; i < dense.size(); ++i) {
      if (!dense.is_array() || dense[i] != i)
        config.refuse("mlp_only_layers", "the first layers in order, or an empty list", "[0, 1]");
    }
    shape.dense_layers = static_cast<std::int64_t>(dense.size());
    if (shape.dense_layers > 0) shape.d_ffn = config.count("intermediate_size");
  }
  return shape;
}

ModelShape olmoe(const ConfigReader& config) {
  ModelShape shape = common(config);
  read_routing(shape, config, "num_experts", "num_experts_per_tok");
  shape.d_expert = config.count("intermediate_size");
  read_attention_bias(shape, config, false);
  shape.query_key_norm = costmodel::QueryKeyNorm::all_heads;
  return shape;
}

// The multi-token-prediction module (num_nextn_predict_layers) is left out, as in the published parameter
// counts. The router's bias balances the load.
ModelShape deepseek_v3(const ConfigReader& config) {
  ModelShape shape = common(config);
  shape.kv_heads = shape.head_dim = 0;
  shape.latent = costmodel::LatentAttention{config.count_or("q_lora_rank", 0), config.count("kv_lora_rank"),
                                            config.count("qk_nope_head_dim"),
                                            config.count("qk_rope_head_dim"), config.count("v_head_dim")};
  read_routing(shape, config, "n_routed_experts", "num_experts_per_tok");
  shape.d_expert = config.count("moe_intermediate_size");
  shape.shared_experts = config.count("n_shared_experts", 0);
  shape.dense_layers = config.count("first_k_dense_replace", 0);
  if (shape.dense_layers > 0) shape.d_ffn = config.count("intermediate_size");
  if (config.count_or("moe_layer_freq", 1) != 1)
    config.refuse("moe_layer_freq", "1 (experts in every layer after the dense layers)", "1");
  shape.router_bias = true;
  shape.embedding_counts_as_active = false;
  return shape;
}

ModelShape gpt_oss(const ConfigReader& config) {
  ModelShape shape = common(config);
  read_routing(shape, config, "num_local_experts", "num_experts_per_tok");
  shape.d_expert = config.count("intermediate_size");
  read_attention_bias(shape, config, true);
  shape.sinks = shape.ffn_bias = shape.router_bias = true;
  shape.window_tokens = config.count("sliding_window");
  shape.window_layers = (shape.layers + 1) / 2;  // every other layer, starting with the first
  shape.embedding_counts_as_active = false;
  return shape;
}

struct Architecture {
  const char* model_type;
  ModelShape (*read)(const ConfigReader&);
};
constexpr Architecture kArchitectures[] = {
    {"mixtral", mixtral}, {"qwen3_moe", qwen3_moe}, {"olmoe", olmoe}, {"deepseek_v3", deepseek_v3},
    {"gpt_oss", gpt_oss}, {"llama", llama},         {"qwen3", qwen3},
};

// Computes the number of parameters in floating point first, because the exact count has only 64 bits and
// could overflow.
void check_size(const ModelShape& shape, const ConfigReader& config) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double width = real(std::max(shape.d_expert, shape.d_ffn));
  const double attention =
      4 * real(shape.heads) * real(costmodel::query_key_dim(shape) + costmodel::value_dim(shape));
  const double parameters =
      real(shape.d_model) *
      (2 * real(shape.vocabulary) +
       real(shape.layers) * (attention + real(shape.experts + shape.shared_experts + 1) * (3 * width + 2)));
  if (parameters > 1e16) config.refuse("hidden_size", "a model of at most 1e16 parameters", "4096");
  if (shape.dense_layers > shape.layers) {
    config.refuse(config.has("mlp_only_layers") ? "mlp_only_layers" : "first_k_dense_replace",
                  fmt::format("at most num_hidden_layers = {}", shape.layers), "1");
  }
}

}  // namespace

std::vector<std::string> hf_model_types() {
  std::vector<std::string> names;
  for (const Architecture& architecture : kArchitectures) names.emplace_back(architecture.model_type);
  return names;
}

ModelShape read_hf_config(const std::string& path) {
  const ConfigReader config(path);
  const std::string expected = "one of \"" + joined(hf_model_types(), "\", \"") + '"';
  const std::string model_type = config.text("model_type", expected, "\"mixtral\"");
  const auto* found = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                                   [&](const Architecture& a) { return a.model_type == model_type; });
  if (found == std::end(kArchitectures)) {
    const std::string meant = nearest(model_type, hf_model_types());
    config.refuse("model_type", expected, "\"mixtral\"", meant.empty() ? "" : '"' + meant + '"');
  }
  ModelShape shape = found->read(config);
  shape.architecture = model_type;
  const std::filesystem::path file = std::filesystem::absolute(path);
  shape.name =
      file.filename() == "config.json" ? file.parent_path().filename().string() : file.stem().string();
  check_size(shape, config);
  return shape;
}

}  // namespace fomoe::scenario
