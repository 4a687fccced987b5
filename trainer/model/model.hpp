// The paper's decoder-only transformer (FoMoE, appendix "Model Architecture and Configuration"):
//
//   x0      = LN(E[token])
//   x      += s·LN(Attention(LN(x)))
//   x      += s·LN(MoE(LN(x)))
//   logits  = LN(x)·Eᵀ / (d/256)
//
// The middle two lines are one layer. E is the embedding, which is also the unembedding (tied). d is the
// width of x, L the number of layers, and s = (L/4)^−1 the depth multiplier of CompleteP with alpha = 1. A
// dense model (no experts) has a feed-forward block SiLU(x·W_up)·W_down in place of the MoE. Each
// branch has an LN before and after it (Peri-LN). LN has a scale and no bias. Attention is causal, with
// rotary q and k. Its scores are q·k/d_head as in CompleteP, instead of q·k/√d_head.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/kernels/choice.hpp"
#include "trainer/kernels/peri_norm/peri_norm.hpp"
#include "trainer/model/constants.hpp"
#include "trainer/model/moe.hpp"
#include "trainer/model/parameters.hpp"
#include "trainer/model/tied_embedding.hpp"
#include "trainer/rope/rope.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct ModelOptions {
  ExpertChoice experts;
  at::Device device = at::kCPU;
  /// fp64, fp32 or bf16. With bf16 the model keeps fp32 masters beside bf16 copies, which the forward and
  /// backward passes use. The optimiser updates the masters and casts them to the copies. Each parameter then
  /// costs 4 + 2 bytes, and 2 bytes for its gradient.
  at::ScalarType dtype = at::kFloat;
  // an expert's initial values depend on the seed, not on which other experts are local
  std::uint64_t seed = 42;
  Kernels kernels = Kernels::by_device;
  /// Keep only the input of each layer for the backward pass, which then computes the layer again.
  bool activation_checkpointing = false;
  ModelConstants constants = {};
};

struct Parameter {
  ParameterSpec spec;
  at::Tensor master;  // the tensor that is optimised, sent and stored
  // leaf of the autograd graph, which holds the gradient; the same tensor as `master` unless dtype is bf16
  at::Tensor compute;
};

/// Statistics of the routers over one or more forward passes.
struct Routing {
  // per layer int64 [experts scored]; adds the number of slots that chose each expert. A dense model leaves
  // it empty.
  std::vector<at::Tensor> counts;
  bool wants_balance = false;
  at::Tensor balance;  // mean over layers of the load-balancing loss of moe.hpp
};

class Model {
 public:
  Model(const costmodel::ModelShape& shape, ModelOptions options);

  [[nodiscard]] const costmodel::ModelShape& shape() const { return shape_; }
  [[nodiscard]] const ModelOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] std::int64_t parameter_count() const;
  [[nodiscard]] bool own_kernels() const { return own_kernels_; }

  /// Called with the index of a layer and its input [B·S, d]; the layer uses the returned tensor instead.
  using AtLayer = std::function<at::Tensor(std::int64_t layer, const at::Tensor& input)>;

  /// Mean cross-entropy over all positions. tokens, targets: int64 [B, S]; `targets` are the next tokens. Its
  /// backward() gives the gradient of `weight`·loss (cross_entropy.hpp).
  [[nodiscard]] at::Tensor loss(const at::Tensor& tokens, const at::Tensor& targets,
                                Routing* routing = nullptr, const AtLayer& at_layer = {},
                                double weight = 1) const;

  /// Mean cross-entropy of each sequence, fp64 [B] on the host, without gradients.
  [[nodiscard]] at::Tensor sequence_losses(const at::Tensor& tokens, const at::Tensor& targets) const;

  /// Final hidden states, after the last LN and divided by d/256. tokens int64 [B, S] → [B·S, d].
  [[nodiscard]] at::Tensor hidden(const at::Tensor& tokens) const;

  /// Changes which experts the rows of the expert tensors belong to. The number of experts in each layer
  /// stays the same. The content of the rows is not changed; the caller must fill in the new experts' values.
  void relabel_experts(ExpertChoice experts);

  /// Drops all gradients.
  void clear_gradients();
  /// Casts the masters to the compute copies; call it after the masters have changed.
  void refresh_compute_weights();

 private:
  [[nodiscard]] at::Tensor hidden(const at::Tensor& tokens, const TiedGradientHandle& tied, Routing* routing,
                                  const AtLayer& at_layer) const;
  [[nodiscard]] const at::Tensor& weight(std::int64_t layer, Role role) const;
  [[nodiscard]] at::Tensor norm(const at::Tensor& x, const at::Tensor& scale) const;
  /// Returns x + s·LN(y) and the LN of that sum, which is the input of the next branch or of the head.
  [[nodiscard]] PeriNormed add_branch(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out_scale,
                                      const at::Tensor& in_scale) const;
  [[nodiscard]] at::Tensor attention(std::int64_t layer, const at::Tensor& x, std::int64_t batch,
                                     const RotaryTable& table) const;
  [[nodiscard]] MoeLayer moe_layer(std::int64_t layer) const;
  [[nodiscard]] bool dense() const { return shape_.experts == 0; }
  /// The feed-forward block of a dense model: SiLU(x·W_up)·W_down. x [T, d] → [T, d]
  [[nodiscard]] at::Tensor feed_forward(std::int64_t layer, const at::Tensor& x) const;
  /// From the input of a layer, and its LN, to those of the next layer or of the head.
  [[nodiscard]] PeriNormed through_layer(std::int64_t layer, const PeriNormed& x, std::int64_t batch,
                                         const RotaryTable& table, RouterUse* use) const;
  void initialise(const Parameter& parameter) const;
  /// The values of the master in the type that the model computes with.
  [[nodiscard]] at::Tensor compute_copy(const Parameter& parameter);
  void index_local_experts();

  costmodel::ModelShape shape_;
  ModelOptions options_;
  std::vector<Parameter> parameters_;
  bool own_kernels_;
  at::Tensor padded_embedding_;          // see linear_cross_entropy; undefined for fp32 and fp64
  std::vector<at::Tensor> local_index_;  // per layer, see MoeLayer::local_index
};

}  // namespace fomoe::trainer
