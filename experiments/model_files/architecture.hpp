// What distinguishes the architectures of Hugging Face's models: one row of a table each.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "costmodel/inputs/model_shape.hpp"
#include "experiments/model_files/config_reader.hpp"

namespace fomoe::scenario {

/// A property that a field states, or that all models of the architecture share (`field` is nullptr).
struct Flag {
  const char* field = nullptr;
  bool fallback = false;  // the value if the field is null, or if no model of the architecture has it
};

inline constexpr std::int64_t kNoLayer = -1;

/// Which layers see sliding_window tokens without layer_types, where the library has a rule of its own. All
/// but late_always need use_sliding_window.
enum class WindowRule {
  none,         // full_every says it
  late,         // from layer max_window_layers on (Qwen2, Qwen3)
  late_always,  // the same, whatever use_sliding_window says (dots.llm1)
  even,         // those of layers 0, 2, 4, … that are below max_window_layers (Qwen2-MoE)
  all,          // (Qwen3-MoE)
  not_rotated   // those without rotary embedding (SmolLM3)
};

/// A row. The defaults describe a dense model with two norms per layer, gated feed-forward blocks and heads
/// that may share keys and values. A name of a field is nullptr if the architecture does not have the field.
struct Architecture {
  const char* model_type;
  const char* experts = nullptr;  // number of routed experts of a layer; nullptr: a dense model
  /// The width of the feed-forward blocks of models of the architecture that have no experts: those with at
  /// most `experts_of_dense` of them. nullptr: all models have experts.
  const char* width_without_experts = nullptr;
  std::int64_t experts_of_dense = 0;
  const char* active = "num_experts_per_tok";
  const char* d_expert = "moe_intermediate_size";
  const char* shared = nullptr;        // number of shared experts of width d_expert
  const char* shared_width = nullptr;  // hidden width of all shared experts together, instead of `shared`
  const char* kv_heads = "num_key_value_heads";
  bool for_images = false;            // lists have the numbers of experts for text and for images
  const char* dense_first = nullptr;  // number of leading layers without experts
  const char* d_ffn = "intermediate_size";
  const char* prediction_modules = "num_nextn_predict_layers";

  bool latent = false;  // multi-head latent attention
  Flag qkv_bias = {}, output_bias = {}, ffn_bias = {}, router_bias = {};
  costmodel::QueryKeyNorm query_key_norm = costmodel::QueryKeyNorm::none;
  costmodel::AttentionGate attention_gate = costmodel::AttentionGate::none;
  bool sinks = false, shared_gate = false, norm_bias = false, gated = true;
  /// Without layer_types, every n-th layer sees the whole sequence, and the others see sliding_window tokens.
  /// 0: all layers see the whole sequence. kNoLayer: none does, if the config has a sliding_window. Older
  /// configs of some architectures state n.
  std::int64_t full_every = 0;
  WindowRule window_rule = WindowRule::none;
  std::int64_t norms_per_layer = 2;
  bool tied = false;                       // of a config whose tie_word_embeddings is null
  bool embedding_counts_as_active = true;  // the convention of the publisher

  /// Reads what the other members cannot describe, after them.
  void (*adapt)(costmodel::ModelShape&, const ConfigReader&) = nullptr;
  /// Reads the whole model, instead of all other members.
  costmodel::ModelShape (*read)(const ConfigReader&) = nullptr;
};

/// Models with experts and their dense relatives; all other dense models; both.
std::span<const Architecture> mixtures();
std::span<const Architecture> dense_architectures();
std::vector<Architecture> architectures();

/// A model that contains a language model beside encoders of images or sound. The config has an object that
/// describes the language model; older files have its fields outside of any object.
struct Wrapper {
  const char* model_type;
  const char* inside;     // the name of the object
  const char* text_type;  // the language model, unless the object's own model_type says otherwise
};
std::span<const Wrapper> wrappers();

/// The kinds of the layers by the field layer_types or one of its older names; empty if the file has none.
/// Throws FileError unless there is a kind for each of `layers` layers.
std::vector<std::string> layer_types(const ConfigReader& config, std::int64_t layers);

/// The number of layers that see sliding_window tokens by the rule, which is not none. `types` are the kinds
/// of the layers, or empty.
std::int64_t layers_by_rule(WindowRule rule, const ConfigReader& config, std::int64_t layers,
                            const std::vector<std::string>& types);

/// Sets which layers have experts: the i-th layer if chosen[i].
void set_moe_layers(costmodel::ModelShape& shape, const std::vector<bool>& chosen);

// Functions of rows: see architecture_parts.cpp.
void sparse_steps(costmodel::ModelShape& shape, const ConfigReader& config);
void moe_frequency(costmodel::ModelShape& shape, const ConfigReader& config);
void sparse_indexer(costmodel::ModelShape& shape, const ConfigReader& config);
void gated_delta_net(costmodel::ModelShape& shape, const ConfigReader& config);
void kimi_delta_attention(costmodel::ModelShape& shape, const ConfigReader& config);
void lightning_attention(costmodel::ModelShape& shape, const ConfigReader& config);
void short_convolutions(costmodel::ModelShape& shape, const ConfigReader& config);
void mamba_layers(costmodel::ModelShape& shape, const ConfigReader& config);
void interleaved_llama(costmodel::ModelShape& shape, const ConfigReader& config);
void ernie(costmodel::ModelShape& shape, const ConfigReader& config);
void ernie_with_images(costmodel::ModelShape& shape, const ConfigReader& config);
void hunyuan(costmodel::ModelShape& shape, const ConfigReader& config);
void head_bias(costmodel::ModelShape& shape, const ConfigReader& config);
void optional_head_norm(costmodel::ModelShape& shape, const ConfigReader& config);
void optional_dense_layers(costmodel::ModelShape& shape, const ConfigReader& config);
void norm_after_experts(costmodel::ModelShape& shape, const ConfigReader& config);
void jamba(costmodel::ModelShape& shape, const ConfigReader& config);
void arctic(costmodel::ModelShape& shape, const ConfigReader& config);
void grok(costmodel::ModelShape& shape, const ConfigReader& config);
void bailing(costmodel::ModelShape& shape, const ConfigReader& config);
void step3(costmodel::ModelShape& shape, const ConfigReader& config);
costmodel::ModelShape dbrx(const ConfigReader& config);
costmodel::ModelShape longcat_flash(const ConfigReader& config);
costmodel::ModelShape nemotron_h(const ConfigReader& config);
costmodel::ModelShape deepseek_v4(const ConfigReader& config);

}  // namespace fomoe::scenario
