// The outer optimiser: how averaged pseudo-gradients change the parameters. Its d = θ_before − θ_after,
// averaged over sites, takes the place of an ordinary optimiser's gradient. θ_before are the parameters
// before the local steps of a round and θ_after those after them. η is the learning rate.
//
//   nesterov     b ← μ·b + d,  θ ← θ_before − η·(d + μ·b)
//                (DiLoCo, arXiv 2311.08105; PyTorch's SGD); without momentum θ_before − η·d
//   adam, yogi   m ← β1·m + (1 − β1)·d
//                v ← β2·v + (1 − β2)·d²                              adam
//                v ← v − (1 − β2)·d²·sign(v − d²)                    yogi
//                θ ← θ_before − η·m/(√v + τ)
//                (FedOpt, arXiv 2003.00295, algorithm 2: no bias correction)
#pragma once
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct OuterOptions {
  costmodel::OuterOptimizer kind = costmodel::OuterOptimizer::nesterov;
  double learning_rate = 0.7;
  double momentum = 0.9;                                // μ, for nesterov
  bool keeps_momentum = true;                           // false: μ is 0, and no state is kept
  double beta1 = 0.9, beta2 = 0.99, adaptivity = 1e-3;  // for adam and yogi; adaptivity is τ
};

/// Holds the state for tensors with the shapes of `like`, all zero at the start.
class OuterOptimizer {
 public:
  OuterOptimizer(OuterOptions options, const std::vector<at::Tensor>& like);

  /// Updates tensor `index` of `like`, or a part of it. `anchor` holds the values before the local steps and
  /// becomes the new θ. `select` takes a whole state tensor and returns the part that belongs to `anchor`.
  template <class Select>
  void step(std::size_t index, const Select& select, at::Tensor anchor, const at::Tensor& difference) {
    update(anchor, first_.empty() ? at::Tensor() : select(first_[index]),
           second_.empty() ? at::Tensor() : select(second_[index]), difference);
  }

  /// The momentum or first moments, and the second moments, in the order of `like`; empty if the optimiser
  /// has none.
  [[nodiscard]] std::vector<at::Tensor>& first() { return first_; }
  [[nodiscard]] std::vector<at::Tensor>& second() { return second_; }

 private:
  void update(at::Tensor anchor, at::Tensor first, at::Tensor second, const at::Tensor& difference) const;

  OuterOptions options_;
  std::vector<at::Tensor> first_, second_;
};

}  // namespace fomoe::trainer
