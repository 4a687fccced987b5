#include "costmodel/model/flops.hpp"

#include <algorithm>

namespace fomoe::costmodel {

namespace {
// 2 FLOPs per parameter in the forward pass, 4 in the backward pass (Kaplan et al. 2020).
constexpr double kTrainingFlopsPerParameter = 6.0;

// FLOPs of attention scores and weighted values: 2·s·(a·d_qk + a·d_v) in the forward pass of a layer that
// sees s tokens, 3 times that with the backward pass; 12·d·s if a·d_qk = a·d_v = d.
double attention_flops_per_token(const ModelShape& shape) {
  if (shape.opaque) return 0;
  const auto width = static_cast<double>(shape.heads * (query_key_dim(shape) + value_dim(shape)));
  const std::int64_t window = std::min(shape.sequence_length, shape.window_tokens);
  const auto seen_by_all_layers = static_cast<double>(
      (shape.layers - shape.window_layers) * shape.sequence_length + shape.window_layers * window);
  return kTrainingFlopsPerParameter * width * seen_by_all_layers;
}
}  // namespace

FlopsPerToken full_replica_flops(const ModelShape& shape) {
  const MatrixParameters matrices = matrix_parameters(shape);
  FlopsPerToken flops;
  // The unembedding is a matrix product, the embedding look-up is not. A tied matrix counts once.
  flops.dense = kTrainingFlopsPerParameter * static_cast<double>(matrices.dense);
  flops.attention = attention_flops_per_token(shape);
  flops.router = kTrainingFlopsPerParameter * static_cast<double>(matrices.router);
  if (shape.experts > 0) {
    flops.expert = kTrainingFlopsPerParameter * static_cast<double>(matrices.experts) *
                   static_cast<double>(shape.active_experts) / static_cast<double>(shape.experts);
  }
  return flops;
}

FlopsPerToken flops_per_token(const ModelShape& shape, std::int64_t local_experts, bool skip_token,
                              FlopsAccounting accounting) {
  return partial_replica_flops(full_replica_flops(shape), static_cast<double>(shape.experts),
                               static_cast<double>(shape.active_experts), static_cast<double>(local_experts),
                               skip_token, accounting);
}

}  // namespace fomoe::costmodel
