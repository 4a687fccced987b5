// Floating-point operations of training, per token.
#pragma once
#include <cstdint>

#include "costmodel/scenario.hpp"

namespace fomoe::costmodel {

/// Two definitions of what a skipped token saves; they agree without skip-token.
/// `mechanism`: a chosen expert is local with probability N_le/N_e, and the router scores all experts.
/// `paper`: σ_st·min(k, N_le)/k of the FFN and N_le/N_e of the router (FoMoE paper, eq.
/// "flops_per_token_st").
enum class FlopsAccounting { mechanism, paper };

struct FlopsPerToken {
  double dense = 0;  // projections of attention, dense feed-forward parts, unembedding
  /// Scores and weighted values: 12·L·d·s for the paper's family. The whole square of a sequence, or of a
  /// window where a layer has one: what causal masking could save is not credited.
  double attention = 0;
  double expert = 0;
  double router = 0;
  [[nodiscard]] double total() const { return dense + attention + expert + router; }
};

/// Forward and backward: 6 per matrix parameter and token. `local_experts` = N_le.
FlopsPerToken flops_per_token(const ModelShape& shape, std::int64_t local_experts, bool skip_token,
                              FlopsAccounting accounting);

/// O_e as it takes effect: the number of sites for methods that keep full replicas.
int effective_overlap(const Scenario& scenario);

/// N_le = O_e·N_e/M; check() has refused what does not divide.
std::int64_t local_experts(const Scenario& scenario);

}  // namespace fomoe::costmodel
