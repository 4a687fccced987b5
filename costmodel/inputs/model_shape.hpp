// The architecture as integers, and its parameters counted exactly.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fomoe::costmodel {

/// Scales that normalise queries and keys: none, one vector of head_dim for all heads of a layer (Qwen3), or
/// one scale for every element of queries and keys (OLMoE).
enum class QueryKeyNorm { none, per_head, all_heads };

/// Multi-head latent attention: queries, keys and values through low-rank projections (DeepSeek-V2, arXiv
/// 2405.04434, section 2.1). Per head a query and key have nope_dim + rope_dim elements, a value v_dim.
struct LatentAttention {
  std::int64_t query_rank = 0;  // 0: queries are projected directly
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;  // without rotary embedding, per head
  std::int64_t rope_dim = 0;  // with rotary embedding; the key's is shared by all heads
  std::int64_t v_dim = 0;
  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

/// All that is known of a model of which only counts were given.
struct OpaqueCounts {
  std::int64_t dense_parameters = 0;
  std::int64_t expert_parameters = 0;  // of all experts of all layers
  friend bool operator==(const OpaqueCounts&, const OpaqueCounts&) = default;
};

/// A decoder-only transformer. The first nine members describe the FoMoE paper's family alone (appendix
/// "Model Architecture and Configuration"): sigmoid-routed experts in every layer, tied embeddings,
/// multi-head attention, one up and one down projection per expert, no biases, norm scales. The others say
/// how a model differs from it, and have that family's values by default. experts = 0: a dense model.
struct ModelShape {
  std::string name;  // preset name, or "custom"
  std::int64_t d_model = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t experts = 0;         // N_e, of each layer that has experts
  std::int64_t active_experts = 0;  // k
  std::int64_t d_expert = 0;
  std::int64_t vocabulary = 0;
  std::int64_t sequence_length = 0;

  std::string architecture = "fomoe";  // "fomoe", a Hugging Face model_type, or "opaque"
  std::int64_t kv_heads = 0;           // 0: as many as heads
  std::int64_t head_dim = 0;           // 0: d_model ÷ heads
  std::optional<LatentAttention> latent = std::nullopt;
  bool qkv_bias = false;
  bool output_bias = false;  // of the attention's output projection
  bool sinks = false;        // one learned logit per head
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  std::int64_t window_tokens = 0;  // attention of window_layers layers looks back this far
  std::int64_t window_layers = 0;

  bool gated = false;               // gate, up and down projections instead of up and down
  bool ffn_bias = false;            // of experts and dense feed-forward layers
  bool router_bias = false;         // one per expert
  std::int64_t dense_layers = 0;    // the first layers, with a dense feed-forward part instead of experts
  std::int64_t d_ffn = 0;           // hidden width of that
  std::int64_t shared_experts = 0;  // of width d_expert, beside the routed ones; every token uses them

  bool tied_embeddings = true;
  std::int64_t norms_per_layer = 4;  // scales of d_model elements
  std::int64_t outer_norms = 2;      // outside the layers
  /// Whether the model's publisher counts the embedding table, of which a token reads one row, as active.
  bool embedding_counts_as_active = true;
  std::optional<OpaqueCounts> opaque = std::nullopt;

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

/// The five configurations of the paper's table "Overview of the model configurations".
const std::vector<ModelShape>& presets();

/// nullptr where there is no preset of that name.
const ModelShape* find_preset(std::string_view name);

/// Layers that have experts.
std::int64_t moe_layers(const ModelShape& shape);
/// The index among all layers of the i-th of them: dense layers come first.
inline std::int64_t layer_of_moe_layer(const ModelShape& shape, std::int64_t i) {
  return shape.dense_layers + i;
}
std::int64_t kv_heads(const ModelShape& shape);
/// Elements per head of queries and keys, and of values.
std::int64_t query_key_dim(const ModelShape& shape);
std::int64_t value_dim(const ModelShape& shape);
/// Matrices of a feed-forward block: 3 gated, 2 not.
inline std::int64_t ffn_matrices(const ModelShape& shape) { return shape.gated ? 3 : 2; }

struct ParameterCounts {
  std::int64_t embedding = 0;  // V·d, twice where the unembedding is a matrix of its own
  std::int64_t attention = 0;  // projections, their biases, sinks
  std::int64_t dense_ffn = 0;  // dense layers and shared experts; all that is dense of an opaque model
  std::int64_t router = 0;
  std::int64_t expert = 0;  // routed experts
  std::int64_t norm = 0;
  /// What every site holds whatever the placement; the router aside.
  [[nodiscard]] std::int64_t dense() const { return embedding + attention + dense_ffn + norm; }
  [[nodiscard]] std::int64_t total() const { return dense() + router + expert; }
};

ParameterCounts count_parameters(const ModelShape& shape);

/// Parameters that one token uses: all but the experts that it is not routed to. `with_embedding_table`:
/// counting all rows of the embedding table where that is not also the unembedding.
std::int64_t active_parameters(const ModelShape& shape, bool with_embedding_table);
/// The same by the convention of the model's publisher.
std::int64_t active_parameters(const ModelShape& shape);

/// Parameters that a token is multiplied by, one class each: matrices alone, without biases, norms and the
/// embedding look-up. Of an opaque model: all.
struct MatrixParameters {
  std::int64_t dense = 0;  // attention, dense feed-forward, shared experts, unembedding
  std::int64_t router = 0;
  std::int64_t experts = 0;  // all routed ones, of which a token uses k of N_e
};
MatrixParameters matrix_parameters(const ModelShape& shape);

/// Elements of one expert and of its share of the router. Of an opaque model the mean, rounded down:
/// expert_elements(shape, i) has the exact one.
std::int64_t expert_elements(const ModelShape& shape);
std::int64_t router_column_elements(const ModelShape& shape);
/// Of the i-th expert, 0 ≤ i < moe_layers · experts. All are equal but where an opaque count does not divide.
std::int64_t expert_elements(const ModelShape& shape, std::int64_t index);

}  // namespace fomoe::costmodel
