// Floating-point operations of training, per token.
#pragma once
#include <cstdint>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// Two definitions of the FLOPs that remain with skip-token. Without skip-token the two definitions are
/// equal. k is the number of experts that a token uses. A site holds N_le of the N_e experts of each layer,
/// and σ_st = N_le/N_e.
///   mechanism  A chosen expert is local with probability N_le/N_e, and the router scores all experts.
///   paper      σ_st·min(k, N_le)/k of the experts' FLOPs, and N_le/N_e of the router's FLOPs (FoMoE paper,
///              eq. "flops_per_token_st").
enum class FlopsAccounting { mechanism, paper };

struct FlopsPerToken {
  double dense = 0;  // projections of attention, dense feed-forward parts, unembedding
  /// FLOPs of attention's scores and weighted values. They are 12·L·d·s for the paper's family of models,
  /// where L is the number of layers, d is d_model and s is the sequence length. Every pair of positions of a
  /// sequence counts, or of the window in layers with a window, as an MFU counts them: what causal masking
  /// saves is not deducted (causal_flops). Layers of linear attention count the products with their state
  /// (linear_attention.hpp).
  double attention = 0;
  double expert = 0;
  double router = 0;
  [[nodiscard]] double total() const { return dense + attention + expert + router; }
};

/// 2 FLOPs per parameter and token in the forward pass, 4 in the backward pass (Kaplan et al. 2020).
inline constexpr double kTrainingFlopsPerParameter = 6;

/// Model FLOPs utilisation: the FLOPs of the tokens that are processed in a second ÷ the peak FLOP/s.
constexpr double model_flops_utilisation(double flops_per_token, double tokens_per_s, double peak_flops) {
  return flops_per_token * tokens_per_s / peak_flops;
}

/// FLOPs per token on a site that holds every expert: 6 for each element of a matrix that a token uses.
FlopsPerToken full_replica_flops(const ModelShape& shape);

/// FLOPs per token on a site that holds `local_experts` = N_le of N_e experts. `active_experts` = k is the
/// largest number of experts that a token uses.
inline FlopsPerToken partial_replica_flops(const FlopsPerToken& full, double experts, double active_experts,
                                           double local_experts, bool skip_token,
                                           FlopsAccounting accounting) {
  // In a dense model, which has no experts, full.expert and full.router are 0, whatever these shares are.
  const double active_share = std::min(active_experts, local_experts) / std::max(active_experts, 1.0);
  const double local_share = local_experts / std::max(experts, 1.0);  // σ_st
  FlopsPerToken flops;
  flops.dense = full.dense;
  flops.attention = full.attention;
  if (!skip_token) {
    flops.expert = active_share * full.expert;  // F_FFN · min(k, N_le)/k
    flops.router = local_share * full.router;   // F_gate · N_le/N_e
  } else if (accounting == FlopsAccounting::mechanism) {
    /// Each of the k chosen experts is local with probability N_le/N_e.
    flops.expert = local_share * full.expert;
    flops.router = full.router;  // the router scores all N_e experts
  } else {
    flops.expert = local_share * active_share * full.expert;
    flops.router = local_share * full.router;
  }
  return flops;
}

/// FLOPs of the unembedding, per token, which full_replica_flops() counts as dense; 0 if only counts are
/// known.
double unembedding_flops(const ModelShape& shape);

/// Share of the forward pass that activation checkpointing repeats: of all layers or of every n-th one,
/// including attention. The unembedding is no layer, and its activations are kept. Selective checkpointing
/// repeats every second matrix product of the layers (assumed: half of their FLOPs), or attention's scores
/// and weighted values.
double repeated_share(const SiteGpus& gpus, const FlopsPerToken& flops, double unembedding);

/// Share of the unembedding in the FLOPs of a forward pass, and in those of a backward pass: it comes after
/// all layers in one and before them in the other. The backward pass repeats what repeated_share() says, but
/// not the unembedding. 0 if only counts are known.
struct HeadShares {
  double forward = 0, backward = 0;
};
HeadShares head_shares(const ModelShape& shape, const SiteGpus& gpus, const FlopsPerToken& flops);

/// The FLOPs that attention kernels execute: a token sees itself and the tokens before it, which are half of
/// a sequence on average, and fewer than a window at the beginning (Dao 2023, FlashAttention-2, arXiv
/// 2307.08691, section 3.1). In a chunk it sees what precedes it there; an indexer scores the tokens before
/// it and selects among them; a compressed key is seen once all of its tokens have passed. Linear attention
/// counts as in `flops`.
FlopsPerToken causal_flops(const ModelShape& shape, FlopsPerToken flops);

/// Share of experts in the FLOPs of a backward pass, which computes 2 of 3 parts and repeats `repeated` of
/// the third. `share` is their share in all three parts. Experts are in layers, so that all of their part is
/// repeated.
inline double expert_share_of_backward(double share, double repeated) {
  return repeated > 0 ? 3 * share / (2 + repeated) : share;
}

/// FLOPs per token on a site with `local_experts` = N_le experts per layer: full_replica_flops() and
/// partial_replica_flops() in one call.
/// N_le may be a mean over layers.
FlopsPerToken flops_per_token(const ModelShape& shape, double local_experts, bool skip_token,
                              FlopsAccounting accounting);

/// FLOPs per token of the scenario, as the mechanism executes them, mean over the tokens of all sites.
FlopsPerToken flops_per_token(const Scenario& scenario);

}  // namespace fomoe::costmodel
