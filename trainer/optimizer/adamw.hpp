// AdamW as our own kernel (kernels/adam.hpp) where the model computes with our own, else as LibTorch's fused
// one, which reads and writes every parameter once too. Experts that came from another site restart: their
// moments are zero, their bias correction counts from there, and their rate warms up again, while their
// neighbours in the same tensor go on.
#pragma once

#include <vector>

#include "trainer/model/model.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Defaults: the paper's appendix on training settings. The rate is that of the base model.
struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double restart_warmup_steps = 0;  // of an expert that restarted: its rate is ×min(1, steps since ÷ this)
};

/// What an expert of a site remembers beside its moments.
struct ExpertSteps {
  double moments = 0;         // updates that its moments hold, for bias correction
  double since_restart = -1;  // updates since it came here; −1: it has been here since the start
  friend bool operator==(const ExpertSteps&, const ExpertSteps&) = default;
};

class AdamW {
 public:
  AdamW(Model& model, AdamWOptions options);

  /// One update from the gradients that the parameters hold (parameters without one keep their value, and
  /// their step count), then forgets the gradients. A model with bf16 copies gets them cast anew.
  /// prepare(), update() and count() in one.
  void step();

  /// What the host knows and the device does not: the rate, and counts of experts that were changed.
  void prepare();
  /// The device's part. While settled() it asks the same of the device each time, constants included.
  void update();
  /// One update more, in what the host remembers. Of the tensors that the last update() was of.
  void count();
  /// No expert is older than its neighbours or still warming up.
  [[nodiscard]] bool settled() const;

  /// In the order of Model::parameters(), dtype of the masters.
  [[nodiscard]] const std::vector<at::Tensor>& moment1() const { return moment1_; }
  [[nodiscard]] const std::vector<at::Tensor>& moment2() const { return moment2_; }
  /// fp32 scalars: updates of each parameter; of expert tensors experts() says it.
  [[nodiscard]] const std::vector<at::Tensor>& steps() const { return steps_; }
  /// Per layer, by the expert's position among the local ones.
  [[nodiscard]] const std::vector<std::vector<ExpertSteps>>& experts() const { return experts_; }
  void set_experts(std::int64_t layer, std::vector<ExpertSteps> experts);
  [[nodiscard]] const AdamWOptions& options() const { return options_; }
  void set_learning_rate(double rate) { options_.learning_rate = rate; }

 private:
  struct Group;
  [[nodiscard]] bool per_expert(const ParameterSpec& spec) const;
  [[nodiscard]] double warmth(const ExpertSteps& expert) const;
  [[nodiscard]] bool alike(const std::vector<ExpertSteps>& experts) const;
  [[nodiscard]] bool all_alike() const;
  void add_expert_tensor(std::size_t index, const at::Tensor& gradient, std::vector<Group>& groups);
  Group& group_of(std::vector<Group>& groups, double rate_scale, double epsilon_scale) const;
  void update_by_own_kernel(Group& group) const;
  void update_by_library(Group& group) const;

  Model* model_;  // not owned
  AdamWOptions options_;
  std::vector<at::Tensor> moment1_, moment2_;
  std::vector<at::Tensor> steps_;  // on the device, as the fused kernel wants them
  at::Tensor rate_;                // fp64, on the device
  std::vector<std::vector<ExpertSteps>> experts_;
  // What the device has, as far as the host knows; NaN where it does not.
  double device_rate_;
  std::vector<double> device_steps_;  // of tensors with a row or column for each expert
  std::vector<std::size_t> updated_;  // parameters that the last update() was of
};

}  // namespace fomoe::trainer
