// The paper's decoder-only transformer (FoMoE, appendix "Model Architecture and Configuration"):
//
//   x0      = LN(E[token])
//   x      += s·LN(Attention(LN(x)))      s = (L/4)^−1, the depth multiplier (Peri-LN and CompleteP, alpha =
//   1) x      += s·LN(MoE(LN(x))) logits  = LN(x)·Eᵀ / (d/256)          E is the embedding: tied
//
// Attention is causal with rotary q and k and scores q·k/d_head (CompleteP, not 1/√d_head). LN has a scale
// and no bias.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/kernels/choice.hpp"
#include "trainer/kernels/peri_norm/peri_norm.hpp"
#include "trainer/kernels/rotary/rope.hpp"
#include "trainer/model/moe.hpp"
#include "trainer/model/parameters.hpp"
#include "trainer/model/tied_embedding.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct ModelOptions {
  ExpertChoice experts;
  at::Device device = at::kCPU;
  /// fp64, fp32 or bf16. bf16 keeps fp32 masters beside bf16 copies that the forward and backward use; the
  /// optimiser updates the masters and casts them back, so each parameter costs 4 + 2 bytes, and 2 for its
  /// gradient.
  at::ScalarType dtype = at::kFloat;
  std::uint64_t seed = 42;  // the same seed gives an expert the same values, whichever others are local
  Kernels kernels = Kernels::by_device;
};

struct Parameter {
  ParameterSpec spec;
  at::Tensor master;   // what is optimised, sent and stored
  at::Tensor compute;  // leaf of the graph, holds the gradient; the master itself unless dtype is bf16
};

/// What the routers did in one or more forwards.
struct Routing {
  std::vector<at::Tensor> counts;  // per layer int64 [experts scored]: slots that chose the expert; added to
  bool wants_balance = false;
  at::Tensor balance;  // with wants_balance: mean over layers of moe.hpp's load-balancing loss
};

class Model {
 public:
  Model(const costmodel::ModelShape& shape, ModelOptions options);

  [[nodiscard]] const costmodel::ModelShape& shape() const { return shape_; }
  [[nodiscard]] const ModelOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] std::int64_t parameter_count() const;
  [[nodiscard]] bool own_kernels() const { return own_kernels_; }

  /// Called with a layer's number and its input [B·S, d]; what it returns is taken instead.
  using AtLayer = std::function<at::Tensor(std::int64_t layer, const at::Tensor& input)>;

  /// Mean cross-entropy over all positions. tokens, targets: int64 [B, S]; `targets` are the next tokens.
  /// backward() of it gives the gradient of `weight`·loss (cross_entropy.hpp).
  [[nodiscard]] at::Tensor loss(const at::Tensor& tokens, const at::Tensor& targets,
                                Routing* routing = nullptr, const AtLayer& at_layer = {},
                                double weight = 1) const;

  /// Final hidden states, after the last LN and divided by d/256. tokens [B, S] → [B·S, d].
  [[nodiscard]] at::Tensor hidden(const at::Tensor& tokens) const;

  /// Other experts, as many in each layer: only which ones the rows belong to. The rows are the caller's.
  void relabel_experts(ExpertChoice experts);

  /// Forgets all gradients.
  void clear_gradients();
  /// After a change of the masters.
  void refresh_compute_weights();

 private:
  [[nodiscard]] at::Tensor hidden(const at::Tensor& tokens, const TiedGradientHandle& tied, Routing* routing,
                                  const AtLayer& at_layer) const;
  [[nodiscard]] const at::Tensor& weight(std::int64_t layer, Role role) const;
  [[nodiscard]] at::Tensor norm(const at::Tensor& x, const at::Tensor& scale) const;
  /// x + s·LN(y), and its LN, with which the next branch or the head starts.
  [[nodiscard]] PeriNormed add_branch(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out_scale,
                                      const at::Tensor& in_scale) const;
  [[nodiscard]] at::Tensor attention(std::int64_t layer, const at::Tensor& x, std::int64_t batch,
                                     const RotaryTable& table) const;
  [[nodiscard]] MoeLayer moe_layer(std::int64_t layer) const;
  void initialise(const Parameter& parameter) const;
  void index_local_experts();

  costmodel::ModelShape shape_;
  ModelOptions options_;
  std::vector<Parameter> parameters_;
  bool own_kernels_;
  std::vector<at::Tensor> local_index_;  // per layer, see MoeLayer::local_index
};

}  // namespace fomoe::trainer
