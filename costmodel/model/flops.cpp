#include "costmodel/model/flops.hpp"

#include <algorithm>

#include "costmodel/model/local_tokens.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

/// How many keys a token sees: all of its sequence, as an MFU counts them, or those up to itself.
enum class Mask { none, causal };

/// Keys that a token sees, mean over the sequence: at most `most` of those that stand for `rate` tokens each.
/// Up to token t, t/r keys are complete. K = min(s/r, most) are seen from token K·r on, and r tokens see each
/// smaller number: (r·K·(K − 1)/2 + (s − K·r + 1)·K)/s. That is (s + 1)/2 if a token sees all before it.
double keys_seen(Mask mask, std::int64_t s, std::int64_t rate, std::int64_t most) {
  const std::int64_t seen = std::min(s / rate, most);
  if (mask == Mask::none || s == 0) return static_cast<double>(seen);
  const auto k = static_cast<double>(seen), r = static_cast<double>(rate), tokens = static_cast<double>(s);
  return (r * k * (k - 1) / 2 + (tokens - k * r + 1) * k) / tokens;
}

/// Tokens that a token sees of its window, or of its chunk: in each chunk of c tokens they are (c + 1)/2 on
/// average, and the last chunk of a sequence may be shorter.
double window_seen(const ModelShape& shape, Mask mask, std::int64_t s) {
  const std::int64_t window = std::min(s, shape.window_tokens);
  if (mask == Mask::none || !shape.chunked || window == 0) return keys_seen(mask, s, 1, window);
  const auto of_chunk = [](std::int64_t tokens) { return static_cast<double>(tokens * (tokens + 1)) / 2; };
  return (static_cast<double>(s / window) * of_chunk(window) + of_chunk(s % window)) / static_cast<double>(s);
}

// FLOPs of attention scores and weighted values: 2·s·(a·d_qk + a·d_v) in the forward pass of a layer that
// sees s tokens, 3 times that with the backward pass; 12·d·s if a·d_qk = a·d_v = d. An indexer scores all s
// tokens with its own heads, so that attention sees only the best of them. A layer of linear attention has
// products with its state instead, whose number does not depend on s. Keys of compressed attention that stand
// for several tokens count beside the window; an indexer scores them instead of the tokens.
double attention_flops_per_token(const ModelShape& shape, Mask mask) {
  const std::int64_t layers = attention_layers(shape), s = shape.sequence_length;
  double multiply_adds = 0;
  if (shape.heads > 0) {
    const auto width = static_cast<double>(shape.heads * (query_key_dim(shape) + value_dim(shape)));
    const double seen = keys_seen(mask, s, 1, shape.indexer ? shape.indexer->top_k : s);
    multiply_adds = width * (static_cast<double>(layers - shape.window_layers) * seen +
                             static_cast<double>(shape.window_layers) * window_seen(shape, mask, s));
    if (shape.compressed) {
      const CompressedAttention& compressed = *shape.compressed;
      const auto keys = [&](std::int64_t rate, std::int64_t most) {
        return rate > 0 ? keys_seen(mask, s, rate, most) : 0.0;
      };
      const double selected = keys(compressed.sparse_rate, shape.indexer ? shape.indexer->top_k : s);
      multiply_adds +=
          width * (static_cast<double>(compressed.sparse_layers) * selected +
                   static_cast<double>(compressed.heavy_layers) * keys(compressed.heavy_rate, s));
      if (shape.indexer)
        multiply_adds +=
            static_cast<double>(compressed.sparse_layers * shape.indexer->heads * shape.indexer->dim) *
            keys(compressed.sparse_rate, s);
    }
  }
  if (shape.indexer && !shape.compressed)
    multiply_adds +=
        static_cast<double>(layers * shape.indexer->heads * shape.indexer->dim) * keys_seen(mask, s, 1, s);
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
  flops.attention = attention_flops_per_token(shape, Mask::none);
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

HeadShares head_shares(const ModelShape& shape, const SiteGpus& gpus, const FlopsPerToken& flops) {
  const double unembedding = unembedding_flops(shape), share = unembedding / flops.total();
  return {share, 2 * share / (2 + repeated_share(gpus, flops, unembedding))};
}

FlopsPerToken causal_flops(const ModelShape& shape, FlopsPerToken flops) {
  flops.attention = attention_flops_per_token(shape, Mask::causal);
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
