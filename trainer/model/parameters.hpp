// The list of a model's tensors: names, shapes, initialisation and scaling. This header allocates no tensors:
// the model allocates what is listed here, and tests count the parameters of models too large to allocate.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/inputs/model_shape.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::trainer {

/// The base model of the CompleteP parameterisation, from which hyper-parameters transfer: preset `small`.
inline constexpr double kBaseWidth = 256;
inline constexpr double kBaseDepth = 4;

/// The experts that one site holds, and which experts its router scores.
struct ExpertChoice {
  std::vector<std::vector<int>> local;  // per layer, sorted expert ids; empty: all experts in every layer
  bool skip_token = false;  // the router scores all N_e experts, and the output of absent ones is dropped
};

/// The optimiser's counts for one expert of a site.
struct ExpertSteps {
  double moments = 0;  // updates that its moments hold, for bias correction
  // updates since the expert came to this site; −1: it has been here since the start
  double since_restart = -1;
  friend bool operator==(const ExpertSteps&, const ExpertSteps&) = default;
};

/// Sorted ids of the experts held in the layer.
std::vector<int> local_experts(const costmodel::ModelShape& shape, const ExpertChoice& choice,
                               std::int64_t layer);

/// The tensors of one layer, in this order. `embedding` and `embedding_norm` come before all layers, and
/// `final_norm` after them. A dense model (N_e = 0) has `ffn_up` and `ffn_down` in place of `router`, `up`
/// and `down`. V is the vocabulary size, d the model's width, N_le the number of experts that the site holds
/// in the layer, d_expert the inner width of an expert, and d_ffn that of a dense model's feed-forward block.
/// The numbers seed the initial values.
enum class Role {
  embedding,           // [V, d], also the unembedding
  embedding_norm,      // [d]
  attention_norm_in,   // [d]
  qkv,                 // [3d, d]: rows are q, then k, then v
  attention_output,    // [d, d]
  attention_norm_out,  // [d]
  moe_norm_in,         // [d]
  router,              // [d, experts scored]
  up,                  // [N_le, d, d_expert]
  down,                // [N_le, d_expert, d]
  moe_norm_out,        // [d]
  final_norm,          // [d]
  ffn_up,              // [d, d_ffn]
  ffn_down,            // [d_ffn, d]
};
inline constexpr int kTensorsPerLayer = 9, kTensorsPerDenseLayer = 8;

struct ParameterSpec {
  Role role = Role::embedding;
  std::int64_t layer = -1;  // −1: the tensor belongs to no layer
  std::vector<std::int64_t> sizes;
  // CompleteP (arXiv:2505.01618, alpha = 1) for width d and L layers, with m_d = d/256 and m_L = L/4:
  double initial_std = 0;  // 0: filled with ones
  double rate_scale = 1;  // factor of the learning rate: 1/m_d for hidden matrices, 1 for embedding and norms
  // Factor of AdamW's epsilon, which follows the size of the gradient (equation 40 there, and the authors'
  // code in EleutherAI/nanoGPT-mup): 1/(m_d m_L) for all tensors of a layer, 1/m_d for those outside of
  // layers.
  double epsilon_scale = 1;
  /// Factor of the weight decay λ: a matrix loses η·λ of its values in each step at every width, although its
  /// learning rate is rate_scale·η. It is 0 for norms, which no parameterisation decays.
  [[nodiscard]] double decay_scale() const { return initial_std > 0 ? 1 / rate_scale : 0; }

  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] costmodel::TensorClass tensor_class() const;
  [[nodiscard]] std::string name() const;  // such as "layers.3.up"
};

/// The dimension along which a parameter has a row or column for each local expert; −1 if it has none. The
/// router of skip-token scores all experts and is dense.
std::int64_t expert_dim(const ParameterSpec& spec, bool skip_token);

/// All parameters in a fixed order. Throws std::invalid_argument if the choice does not fit the shape.
std::vector<ParameterSpec> parameter_specs(const costmodel::ModelShape& shape, const ExpertChoice& choice);

/// Index of a layer's tensor in the list of parameter_specs, for a model with experts or a dense one.
std::size_t parameter_index(std::int64_t layer, Role role, bool dense = false);

}  // namespace fomoe::trainer
