// AdamW as LibTorch's fused kernel, which reads and writes every parameter once, on CPU and GPU.
#pragma once

#include <vector>

#include "trainer/model.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Defaults: the paper's appendix on training settings. The rate is that of the base model.
struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

class AdamW {
 public:
  AdamW(Model& model, AdamWOptions options);

  /// One update from the gradients that the parameters hold (parameters without one keep their value, and
  /// their step count), then forgets the gradients. A model with bf16 copies gets them cast anew.
  void step();

  /// In the order of Model::parameters(), dtype of the masters.
  [[nodiscard]] const std::vector<at::Tensor>& moment1() const { return moment1_; }
  [[nodiscard]] const std::vector<at::Tensor>& moment2() const { return moment2_; }
  void set_learning_rate(double rate) { options_.learning_rate = rate; }

 private:
  Model* model_;  // not owned
  AdamWOptions options_;
  std::vector<at::Tensor> moment1_, moment2_;
  std::vector<at::Tensor> steps_;  // fp32 scalars on the device, as the fused kernel wants them
};

}  // namespace fomoe::trainer
