// The architecture of a model as integers, and exact parameter counts derived from it.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/inputs/enum_names.hpp"
#include "costmodel/inputs/linear_attention.hpp"

namespace fomoe::costmodel {

/// Normalisation of queries and keys. per_head: one scale vector of head_dim elements, shared by all heads of
/// a layer (Qwen3). all_heads: one scale for every element of queries and keys (OLMoE).
enum class QueryKeyNorm { none, per_head, all_heads };
constexpr auto enum_names(QueryKeyNorm) {
  using enum QueryKeyNorm;
  return std::to_array<EnumName<QueryKeyNorm>>(
      {{none, "none"}, {per_head, "per_head"}, {all_heads, "all_heads"}});
}

/// Multi-head latent attention: low-rank projections produce queries, keys and values (DeepSeek-V2, arXiv
/// 2405.04434, section 2.1). A query and a key have nope_dim + rope_dim elements per head, a value has v_dim.
struct LatentAttention {
  std::int64_t query_rank = 0;  // 0: queries have no low-rank projection
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;  // elements per head without rotary embedding
  std::int64_t rope_dim = 0;  // elements per head with rotary embedding; all heads share the key's
  std::int64_t v_dim = 0;
  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

/// Gate on the output of attention: a value for each element (Qwen3-Next) or for each head.
enum class AttentionGate { none, per_element, per_head };
constexpr auto enum_names(AttentionGate) {
  using enum AttentionGate;
  return std::to_array<EnumName<AttentionGate>>(
      {{none, "none"}, {per_element, "per_element"}, {per_head, "per_head"}});
}

/// Selection of the tokens that attention sees: small heads score all earlier tokens, and attention sees the
/// best `top_k` of them (DeepSeek-V3.2, arXiv 2512.02556). Needs latent or compressed attention with a query
/// rank, from which the scoring heads are computed.
struct SparseIndexer {
  std::int64_t heads = 0;
  std::int64_t dim = 0;  // elements of each head
  std::int64_t top_k = 0;
  friend bool operator==(const SparseIndexer&, const SparseIndexer&) = default;
};

/// Attention to a window of tokens and to keys that stand for several tokens each (DeepSeek-V4's technical
/// report, section 2.3). One projection of head_dim elements is the key and the value of all heads, and
/// queries have a low-rank projection. In sparse layers a key stands for sparse_rate tokens, and an indexer
/// selects the keys that attention sees; in heavy layers it sees all keys, each of heavy_rate tokens. The
/// other layers see only the window. The output projection has output_groups blocks of output_rank columns.
struct CompressedAttention {
  std::int64_t sparse_layers = 0, sparse_rate = 0;
  std::int64_t heavy_layers = 0, heavy_rate = 0;
  std::int64_t output_groups = 0, output_rank = 0;
  friend bool operator==(const CompressedAttention&, const CompressedAttention&) = default;
};

/// Parameter counts of a model whose architecture is unknown ("opaque" model). The shape's d_model, heads,
/// vocabulary and their like may be known nevertheless; they then count in the FLOPs of attention and of the
/// embedding.
struct OpaqueCounts {
  std::int64_t dense_parameters = 0;
  std::int64_t expert_parameters = 0;  // routed experts of all layers together
  friend bool operator==(const OpaqueCounts&, const OpaqueCounts&) = default;
};

/// A decoder-only transformer. The first nine members suffice for the family of the FoMoE paper (appendix
/// "Model Architecture and Configuration"): sigmoid-routed experts in every layer, tied embeddings,
/// multi-head attention, one up and one down projection per expert, no biases, norm scales. The other members
/// describe deviations from that family; their defaults are its values. A dense model has experts = 0.
struct ModelShape {
  std::string name;  // preset name, or "custom"
  std::int64_t d_model = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t experts = 0;         // N_e, experts of each MoE layer
  std::int64_t active_experts = 0;  // k, experts per token
  std::int64_t d_expert = 0;
  std::int64_t vocabulary = 0;
  std::int64_t sequence_length = 0;

  std::string architecture = "fomoe";  // "fomoe", a Hugging Face model_type, or "opaque"
  std::int64_t kv_heads = 0;           // 0: as many as heads
  std::int64_t head_dim = 0;           // 0: d_model ÷ heads
  std::optional<LatentAttention> latent = std::nullopt;
  /// Rank of the queries' projection without latent attention, with a norm on the latent (Step-3, arXiv
  /// 2507.19427); 0: full rank.
  std::int64_t query_rank = 0;
  std::optional<CompressedAttention> compressed = std::nullopt;
  bool qkv_bias = false;
  bool output_bias = false;  // the attention's output projection has a bias
  bool sinks = false;        // one learned attention-sink logit per head
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  AttentionGate attention_gate = AttentionGate::none;
  /// Tokens that each token sees in window_layers layers: a sliding window, or a chunk of the sequence.
  std::int64_t window_tokens = 0;
  std::int64_t window_layers = 0;
  /// The windows are chunks: a token sees those before it in its own chunk of window_tokens (Llama 4).
  bool chunked = false;
  std::optional<SparseIndexer> indexer = std::nullopt;
  std::optional<LinearAttention> linear = std::nullopt;  // layers without attention
  // Layers that have only a feed-forward block, and layers that have none (Nemotron-H)
  std::int64_t layers_without_attention = 0, layers_without_ffn = 0;

  bool gated = false;             // gate, up and down projections instead of up and down
  bool ffn_bias = false;          // experts and dense feed-forward layers have biases
  bool router_bias = false;       // one bias per expert
  std::int64_t dense_layers = 0;  // leading layers with a dense feed-forward block instead of experts
  std::int64_t d_ffn = 0;         // hidden width of these dense feed-forward blocks
  /// Indices of the layers that have experts, ascending; if empty, all layers after dense_layers have them.
  std::vector<std::int64_t> moe_layer_list = {};
  std::int64_t shared_experts = 0;  // experts that every token uses, beside the routed ones
  std::int64_t d_shared = 0;        // hidden width of a shared expert; 0: d_expert
  bool shared_gate = false;         // one more logit scales the output of the shared experts
  /// Routes of the router that lead to no expert: the token passes unchanged (LongCat-Flash, arXiv
  /// 2509.01322).
  std::int64_t identity_experts = 0;

  /// Residual streams between layers: each of a layer's two blocks reads a mixture of them and writes to all
  /// (manifold-constrained hyper-connections of DeepSeek-V4, arXiv 2512.24880). 0: one stream, without
  /// mixing.
  std::int64_t residual_streams = 0;

  bool tied_embeddings = true;
  std::int64_t norms_per_layer = 4;  // norm scale vectors of d_model elements in each layer
  std::int64_t outer_norms = 2;      // norm scale vectors outside the layers
  bool norm_bias = false;            // these norms have a bias vector beside the scale vector
  /// Modules that predict tokens after the next one (DeepSeek-V3, arXiv 2412.19437, section 2.2). Each has
  /// one of the `layers`, at the end, a projection of 2·d_model × d_model and three norms, and computes the
  /// unembedding once more, whose weights it shares.
  std::int64_t prediction_modules = 0;
  std::int64_t other_parameters = 0;  // parameters of no other member, without matrix products
  /// Whether the model's publisher counts the embedding table as active, although a token reads only one of
  /// its rows.
  bool embedding_counts_as_active = true;
  std::optional<OpaqueCounts> opaque = std::nullopt;

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

/// The five configurations of the paper's table "Overview of the model configurations".
const std::vector<ModelShape>& presets();

/// Returns nullptr if no preset has that name.
const ModelShape* find_preset(std::string_view name);

/// Number of layers that have experts, and of layers with a dense feed-forward block instead.
std::int64_t moe_layers(const ModelShape& shape);
std::int64_t dense_ffn_layers(const ModelShape& shape);
/// Number of layers with attention; the other layers have linear attention or only a feed-forward block.
std::int64_t attention_layers(const ModelShape& shape);
/// Index among all layers of the i-th MoE layer.
std::int64_t layer_of_moe_layer(const ModelShape& shape, std::int64_t i);
/// Index among the MoE layers of a layer, or nothing if the layer has no experts.
std::optional<std::int64_t> moe_layer_of_layer(const ModelShape& shape, std::int64_t layer);
std::int64_t kv_heads(const ModelShape& shape);
/// Elements per head of a query and a key, and of a value.
std::int64_t query_key_dim(const ModelShape& shape);
std::int64_t value_dim(const ModelShape& shape);
/// Hidden width of all shared experts of a layer together.
inline std::int64_t shared_width(const ModelShape& shape) {
  return shape.shared_experts * (shape.d_shared > 0 ? shape.d_shared : shape.d_expert);
}
/// Weight matrices of a feed-forward block: 3 with a gate, 2 without.
inline std::int64_t ffn_matrices(const ModelShape& shape) { return shape.gated ? 3 : 2; }

struct ParameterCounts {
  std::int64_t embedding = 0;  // vocabulary · d_model; twice that if the unembedding is a separate matrix
  std::int64_t attention = 0;  // projections, their biases and sinks; linear attention; indexers
  /// Dense layers, shared experts, prediction modules' projections, the mixing of residual streams and
  /// other_parameters; all dense parameters of an opaque model
  std::int64_t dense_ffn = 0;
  std::int64_t router = 0;
  std::int64_t expert = 0;  // routed experts
  std::int64_t norm = 0;
  /// Parameters that every site holds under every placement, without the router.
  [[nodiscard]] std::int64_t dense() const { return embedding + attention + dense_ffn + norm; }
  [[nodiscard]] std::int64_t total() const { return dense() + router + expert; }
};

ParameterCounts count_parameters(const ModelShape& shape);

/// Parameters that one token uses: all except the experts to which it is not routed. `with_embedding_table`
/// counts all rows of an untied embedding table as active; a tied table is always active.
std::int64_t active_parameters(const ModelShape& shape, bool with_embedding_table);
/// Active parameters by the convention of the model's publisher.
std::int64_t active_parameters(const ModelShape& shape);

/// Elements of the matrices with which a token is multiplied, by class. Biases, norms and the embedding
/// look-up are excluded. An opaque model counts all its parameters, except an untied embedding table of known
/// size.
struct MatrixParameters {
  std::int64_t dense = 0;  // attention, dense feed-forward, shared experts, unembeddings
  std::int64_t router = 0;
  std::int64_t experts = 0;  // all routed experts; a token uses k of N_e
};
MatrixParameters matrix_parameters(const ModelShape& shape);

/// Elements of one expert, and of its column of the router. For an opaque model the mean over all experts,
/// rounded down; expert_elements(shape, i) is exact.
std::int64_t expert_elements(const ModelShape& shape);
std::int64_t router_column_elements(const ModelShape& shape);
/// Elements of the i-th expert, 0 ≤ i < moe_layers · experts. All experts are equal unless the expert count
/// of an opaque model does not divide evenly.
std::int64_t expert_elements(const ModelShape& shape, std::int64_t index);

}  // namespace fomoe::costmodel
