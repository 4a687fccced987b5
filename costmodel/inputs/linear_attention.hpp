// Layers that mix tokens with a state of fixed size instead of attention over all earlier tokens.
//
// Symbols: d is the model's width. H_k heads of d_k elements make keys and queries, H_v heads of d_v elements
// make values, and w is the width of a causal convolution over the tokens.
//
//   kind               channels of the convolution   matrices
//   gated_delta        2·H_k·d_k + H_v·d_v           d·(channels + H_v·d_v + 2·H_v) + H_v·d_v·d
//   kimi_delta         2·H_k·d_k + H_v·d_v           d·(channels + H_v) + decay + gate + H_v·d_v·d, where
//                                                    decay = d·r + r·H_k·d_k and gate = d·r + r·H_v·d_v for
//                                                    gates of rank r, and d·H_k·d_k and d·H_v·d_v without it
//   lightning          none                          d·(2·H_k·d_k + H_v·d_v) + d·H_v·d_v + H_v·d_v·d
//   mamba2             H_v·d_v + 2·H_k·d_k           d·(channels + H_v·d_v + H_v) + H_v·d_v·d
//   mamba1             d_v                           2·d·d_v + d_v·(r + 2·d_k) + r·d_v + d_v·d
//   short_convolution  d                             3·d² + d²
//
// gated_delta: Yang et al., "Gated Delta Networks", arXiv 2412.06464, as in Qwen3-Next. The
// gate of the output has H_v·d_v columns, and the decay and the step size β have H_v columns each.
// kimi_delta: Kimi Team, "Kimi Linear", arXiv 2510.26692: the decay has an element for each
// element of a key. lightning: MiniMax, "MiniMax-01", arXiv 2501.08313. mamba2: Dao and Gu,
// "Transformers are SSMs", arXiv 2405.21060; H_k is the number of groups that share B and C, d_k
// is the size of the state and d_v the width of a head. mamba1: Gu and Dao, "Mamba", arXiv 2312.00752, with
// one head of d_v elements, of which each has a state of d_k elements, and time steps of rank r; with the
// norms of Jamba (arXiv 2403.19887) on the time step, B and C. short_convolution: LFM2, arXiv 2511.23404: two
// gates and a convolution, without a state.
#pragma once
#include <array>
#include <cstdint>

#include "costmodel/inputs/enum_names.hpp"

namespace fomoe::costmodel {

enum class LinearKind { gated_delta, kimi_delta, lightning, mamba2, mamba1, short_convolution };
constexpr auto enum_names(LinearKind) {
  using enum LinearKind;
  return std::to_array<EnumName<LinearKind>>({{gated_delta, "gated_delta"},
                                              {kimi_delta, "kimi_delta"},
                                              {lightning, "lightning"},
                                              {mamba2, "mamba2"},
                                              {mamba1, "mamba1"},
                                              {short_convolution, "short_convolution"}});
}

struct LinearAttention {
  LinearKind kind = LinearKind::gated_delta;
  std::int64_t layers = 0;  // how many layers of the model are of this kind
  std::int64_t key_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_heads = 0;
  std::int64_t value_dim = 0;
  std::int64_t kernel = 0;     // w, in tokens; 0 without a convolution
  std::int64_t gate_rank = 0;  // kimi_delta: rank of decay and gate, 0: full rank; mamba1: of the time step
  friend bool operator==(const LinearAttention&, const LinearAttention&) = default;
};

/// Elements of one layer, and what it computes and keeps for a token.
struct LinearLayer {
  std::int64_t matrices = 0;
  std::int64_t others = 0;  // convolution, decays, biases
  std::int64_t norms = 0;
  /// Multiply-adds of a token in the forward pass beside the matrices: the convolution, w for each channel,
  /// and the state, d_k·d_v for each head and each of its products. There are 2 products (the update with
  /// k·vᵀ and the read with q), and 3 with a delta rule, which also reads the state with k. This is the
  /// recurrent form; the chunked forms of kernels compute more.
  std::int64_t state_products = 0;
  /// Elements that the forward pass keeps for the backward pass: the input, the convolution's inputs and
  /// outputs, the gates, and the state's output before and after its gate. States are recomputed.
  std::int64_t kept = 0;
};
LinearLayer linear_layer(const LinearAttention& linear, std::int64_t d_model);

}  // namespace fomoe::costmodel
