#include "costmodel/model_shape.hpp"

namespace fomoe::costmodel {

const std::vector<ModelShape>& presets() {
  //  name, d, L, heads, N_e, k, d_expert, V, sequence
  static const std::vector<ModelShape> all = {
      {"small", 256, 4, 4, 8, 2, 128, 200'019, 2048},      {"medium", 512, 16, 8, 16, 4, 128, 200'019, 2048},
      {"large", 1024, 128, 16, 32, 8, 128, 200'019, 2048}, {"xl", 2048, 256, 32, 64, 16, 128, 200'019, 2048},
      {"xxl", 4096, 512, 64, 128, 32, 128, 200'019, 2048},
  };
  return all;
}

const ModelShape* find_preset(std::string_view name) {
  for (const ModelShape& shape : presets()) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

std::int64_t expert_elements(const ModelShape& shape) { return 2 * shape.d_model * shape.d_expert; }

std::int64_t router_column_elements(const ModelShape& shape) { return shape.d_model; }

ParameterCounts count_parameters(const ModelShape& shape) {
  ParameterCounts counts;
  counts.embedding = shape.vocabulary * shape.d_model;
  counts.attention = shape.layers * 4 * shape.d_model * shape.d_model;
  counts.router = shape.layers * shape.experts * router_column_elements(shape);
  counts.expert = shape.layers * shape.experts * expert_elements(shape);
  counts.norm = shape.d_model * (4 * shape.layers + 2);
  return counts;
}

}  // namespace fomoe::costmodel
