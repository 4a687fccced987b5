#include "costmodel/flops.hpp"

#include "costmodel/methods/method.hpp"

namespace fomoe::costmodel {

namespace {
// 2 FLOPs per parameter forward, 4 backward (Kaplan et al. 2020).
constexpr double kTrainingFlopsPerParameter = 6.0;
}  // namespace

FlopsPerToken full_replica_flops(const ModelShape& shape) {
  const ParameterCounts counts = count_parameters(shape);
  FlopsPerToken flops;
  // The unembedding multiplies; the embedding look-up does not. The tied matrix counts once.
  flops.dense = kTrainingFlopsPerParameter *
                static_cast<double>(counts.embedding + counts.attention + counts.dense_ffn);
  flops.attention = 12.0 * static_cast<double>(shape.layers * shape.d_model * shape.sequence_length);
  flops.expert = kTrainingFlopsPerParameter * static_cast<double>(shape.layers * expert_elements(shape)) *
                 static_cast<double>(shape.active_experts);
  flops.router = kTrainingFlopsPerParameter * static_cast<double>(counts.router);
  return flops;
}

FlopsPerToken flops_per_token(const ModelShape& shape, std::int64_t local_experts, bool skip_token,
                              FlopsAccounting accounting) {
  return partial_replica_flops(full_replica_flops(shape), static_cast<double>(shape.experts),
                               static_cast<double>(shape.active_experts), static_cast<double>(local_experts),
                               skip_token, accounting);
}

int effective_overlap(const Scenario& scenario) {
  const Method* method = find_method(scenario.strategy.method);
  return method != nullptr && method->partial_experts ? scenario.strategy.expert_overlap : scenario.sites();
}

std::int64_t local_experts(const Scenario& scenario) {
  return scenario.model.experts * effective_overlap(scenario) / scenario.sites();
}

}  // namespace fomoe::costmodel
