#include "costmodel/model/flops.hpp"

#include <algorithm>

#include "costmodel/model/local_tokens.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

// FLOPs of attention scores and weighted values: 2·s·(a·d_qk + a·d_v) in the forward pass of a layer that
// sees s tokens, 3 times that with the backward pass; 12·d·s if a·d_qk = a·d_v = d. An indexer scores all s
// tokens with its own heads, so that attention sees only the best of them. A layer of linear attention has
// products with its state instead, whose number does not depend on s. Keys of compressed attention that stand
// for several tokens count beside the window; an indexer scores them instead of the tokens.
double attention_flops_per_token(const ModelShape& shape) {
  const std::int64_t layers = attention_layers(shape), s = shape.sequence_length;
  double multiply_adds = 0;
  if (shape.heads > 0) {
    const auto width = static_cast<double>(shape.heads * (query_key_dim(shape) + value_dim(shape)));
    const std::int64_t seen = shape.indexer ? std::min(s, shape.indexer->top_k) : s;
    const std::int64_t window = std::min(s, shape.window_tokens);
    const auto seen_by_all_layers =
        static_cast<double>((layers - shape.window_layers) * seen + shape.window_layers * window);
    multiply_adds = width * seen_by_all_layers;
    if (shape.compressed) {
      const CompressedAttention& compressed = *shape.compressed;
      const std::int64_t sparse = compressed.sparse_rate > 0 ? s / compressed.sparse_rate : 0;
      const std::int64_t heavy = compressed.heavy_rate > 0 ? s / compressed.heavy_rate : 0;
      const std::int64_t selected = shape.indexer ? std::min(sparse, shape.indexer->top_k) : sparse;
      multiply_adds +=
          width * static_cast<double>(compressed.sparse_layers * selected + compressed.heavy_layers * heavy);
      if (shape.indexer)
        multiply_adds += static_cast<double>(compressed.sparse_layers * shape.indexer->heads *
                                             shape.indexer->dim * sparse);
    }
  }
  if (shape.indexer && !shape.compressed)
    multiply_adds += static_cast<double>(layers * shape.indexer->heads * shape.indexer->dim * s);
  if (shape.linear) {
    multiply_adds +=
        static_cast<double>(shape.linear->layers * linear_layer(*shape.linear, shape.d_model).state_products);
  }
  return kTrainingFlopsPerParameter * multiply_adds;
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

double unembedding_flops(const ModelShape& shape) {
  if (shape.opaque) return 0;
  return kTrainingFlopsPerParameter * static_cast<double>(shape.vocabulary * shape.d_model);
}

double repeated_share(const SiteGpus& gpus, const FlopsPerToken& flops, double unembedding) {
  const double total = flops.total();
  if (gpus.activation_checkpointing)
    return (1.0 - unembedding / total) / static_cast<double>(gpus.checkpoint_every);
  switch (gpus.selective_checkpointing) {
    case SelectiveCheckpointing::operators:
      return (total - unembedding - flops.attention) / total / 2;
    case SelectiveCheckpointing::attention:
      return flops.attention / total;
    case SelectiveCheckpointing::none:
      break;
  }
  return 0;
}

FlopsPerToken causal_flops(const ModelShape& shape, FlopsPerToken flops) {
  if (shape.heads == 0 || shape.indexer || shape.compressed) return flops;
  const auto s = static_cast<double>(shape.sequence_length);
  // Token i of the sequence sees min(i, w) tokens, of which w are counted.
  const auto masked_share = [&](double w) { return (w - 1) / (2 * s); };
  const double window = std::min(s, static_cast<double>(shape.window_tokens));
  const auto windows = static_cast<double>(shape.window_layers);
  const double whole = static_cast<double>(attention_layers(shape)) - windows;
  const auto width = static_cast<double>(shape.heads * (query_key_dim(shape) + value_dim(shape)));
  flops.attention -= kTrainingFlopsPerParameter * width *
                     (whole * s * masked_share(s) + windows * window * masked_share(window));
  return flops;
}

FlopsPerToken flops_per_token(const ModelShape& shape, double local_experts, bool skip_token,
                              FlopsAccounting accounting) {
  return partial_replica_flops(full_replica_flops(shape), static_cast<double>(shape.experts),
                               static_cast<double>(shape.active_experts), local_experts, skip_token,
                               accounting);
}

FlopsPerToken flops_per_token(const Scenario& scenario) {
  const ExpertShares shares = expert_shares(scenario);
  const std::vector<double> local = local_token_shares(scenario.strategy, shares);
  const auto of_site = [&](int site) {
    return flops_per_token(scenario.model, used_experts(shares, local, site), scenario.strategy.skip_token,
                           FlopsAccounting::mechanism);
  };
  if (!shares.differ() && local.empty()) return of_site(0);
  FlopsPerToken mean;
  for (int site = 0; site < scenario.sites(); ++site) {
    const FlopsPerToken own = of_site(site);
    const double share = static_cast<double>(local_batch_sequences(scenario, site)) /
                         static_cast<double>(scenario.workload.global_batch_sequences);
    mean.dense += share * own.dense;
    mean.attention += share * own.attention;
    mean.expert += share * own.expert;
    mean.router += share * own.router;
  }
  return mean;
}

}  // namespace fomoe::costmodel
