// The architecture as integers, and its parameters counted exactly.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fomoe::costmodel {

/// Decoder-only transformer whose feed-forward layers are sigmoid-routed mixtures of experts
/// (FoMoE paper, appendix "Model Architecture and Configuration"): tied embeddings, multi-head attention,
/// one up and one down projection per expert, no biases, LayerNorm scales.
struct ModelShape {
  std::string name;  // preset name, or "custom"
  std::int64_t d_model = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t experts = 0;         // N_e, per layer
  std::int64_t active_experts = 0;  // k
  std::int64_t d_expert = 0;
  std::int64_t vocabulary = 0;
  std::int64_t sequence_length = 0;

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

/// The five configurations of the paper's table "Overview of the model configurations".
const std::vector<ModelShape>& presets();

/// nullptr where there is no preset of that name.
const ModelShape* find_preset(std::string_view name);

struct ParameterCounts {
  std::int64_t embedding = 0;  // V·d, shared with the unembedding
  std::int64_t attention = 0;  // L·4d²
  std::int64_t dense_ffn = 0;
  std::int64_t router = 0;  // L·d·N_e
  std::int64_t expert = 0;  // L·N_e·2·d·d_expert
  std::int64_t norm = 0;    // d(4L + 2): two scales per branch, embedding and final
  [[nodiscard]] std::int64_t total() const {
    return embedding + attention + dense_ffn + router + expert + norm;
  }
};

ParameterCounts count_parameters(const ModelShape& shape);

/// Elements of one expert (up and down projection) and of its router column.
std::int64_t expert_elements(const ModelShape& shape);
std::int64_t router_column_elements(const ModelShape& shape);

}  // namespace fomoe::costmodel
