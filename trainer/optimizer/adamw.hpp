// AdamW. It uses our own kernel (kernels/adam/adam.hpp) if the model uses our own kernels, otherwise
// LibTorch's fused kernel, which also reads and writes every parameter once. For an expert that arrives from
// another site, the optimiser restarts: the expert's moments are zero, its bias correction counts from that
// point, and its learning rate warms up again. The other experts in the same tensor continue as before.
#pragma once

#include <vector>

#include "trainer/model/model.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// The defaults are those of the paper's appendix on training settings. The learning rate is that of the base
/// model (parameters.hpp).
struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0;
  // updates over which the rate of a restarted expert grows linearly to its full value; 0: none
  double restart_warmup_steps = 0;
};

/// The optimiser's counts for one expert of a site.
struct ExpertSteps {
  double moments = 0;  // updates that its moments hold, for bias correction
  // updates since the expert came to this site; −1: it has been here since the start
  double since_restart = -1;
  friend bool operator==(const ExpertSteps&, const ExpertSteps&) = default;
};

class AdamW {
 public:
  AdamW(Model& model, AdamWOptions options);

  /// Makes one update from the gradients that the parameters hold, and drops the gradients. Parameters
  /// without a gradient keep their value and their step count. The bf16 copies of a model are cast again.
  /// step() does the same as prepare(), update() and count() together.
  void step();

  /// Sends to the device what only the host knows: the learning rate, and the counts of experts that have
  /// changed.
  void prepare();
  /// The part of an update that runs on the device. While settled(), each call does the same work on the
  /// device, with the same constants.
  void update();
  /// Counts one more update on the host, for the tensors of the last update().
  void count();
  /// Whether all experts in each tensor have the same step count and none of them is still warming up.
  [[nodiscard]] bool settled() const;

  /// The first and second moments, in the order of Model::parameters() and in the dtype of the masters.
  [[nodiscard]] const std::vector<at::Tensor>& moment1() const { return moment1_; }
  [[nodiscard]] const std::vector<at::Tensor>& moment2() const { return moment2_; }
  /// fp32 scalars: the number of updates of each parameter. For expert tensors, use experts().
  [[nodiscard]] const std::vector<at::Tensor>& steps() const { return steps_; }
  /// The counts of all experts, by layer, then by the expert's position among the local ones.
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
  std::vector<at::Tensor> steps_;  // on the device, where the fused kernel reads them
  at::Tensor rate_;                // fp64, on the device
  std::vector<std::vector<ExpertSteps>> experts_;
  // The host's copies of values on the device; NaN if the host does not know a value.
  double device_rate_;
  std::vector<double> device_steps_;  // for tensors with a row or column for each expert
  std::vector<std::size_t> updated_;  // indices of the parameters that the last update() changed
};

}  // namespace fomoe::trainer
