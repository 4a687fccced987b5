// AdamW. It uses our own kernel (kernels/adam/adam.hpp) if the model uses our own kernels, otherwise
// LibTorch's fused kernel, which also reads and writes every parameter once. For an expert that arrives from
// another site, the optimiser restarts: the expert's moments are zero, its bias correction counts from that
// point, and its learning rate warms up again. The other experts in the same tensor continue as before.
//
// The counts of the experts are vectors on the device, which our own kernel reads. LibTorch's kernel takes
// one count and one rate for each tensor, so tensors whose experts differ are left to our own kernel.
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
  /// Scale the learning rate and epsilon of hidden matrices with width and depth (parameters.hpp).
  bool complete_p = true;
  double weight_decay = 0;
  // updates over which the rate of a restarted expert grows linearly to its full value; 0: none
  double restart_warmup_steps = 0;
  /// With several shards (ZeRO stage 1, arXiv 1910.02054), this optimiser has the moments of part `shard` of
  /// the rows of each parameter, and updates these rows only.
  int shard = 0, shards = 1;
};

/// Rows [begin, begin + count) of a parameter, along its first dimension.
struct Rows {
  std::int64_t begin = 0, count = 0;
  [[nodiscard]] at::Tensor of(const at::Tensor& whole) const { return whole.narrow(0, begin, count); }
};
/// The rows of a shard. Shards of one parameter have about as many rows. All but the last one have a multiple
/// of 16 elements, so that vector instructions treat each element as they would in the whole parameter.
Rows rows_of_shard(const at::Tensor& parameter, int shard, int shards);

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
  /// The part of an update that runs on the device. If the model uses our own kernels, each call does the
  /// same work on the device, with the same constants, whatever the counts of the experts.
  void update();
  /// Counts one more update on the host, for the tensors of the last update().
  void count();

  /// The first and second moments, in the order of Model::parameters() and in the dtype of the masters. With
  /// several shards, they have the rows of this shard.
  [[nodiscard]] const std::vector<at::Tensor>& moment1() const { return moment1_; }
  [[nodiscard]] const std::vector<at::Tensor>& moment2() const { return moment2_; }
  /// fp32 scalars: the number of updates of each parameter; of expert tensors, those of the first expert.
  [[nodiscard]] const std::vector<at::Tensor>& steps() const { return steps_; }
  /// The counts of all experts, by layer, then by the expert's position among the local ones.
  [[nodiscard]] const std::vector<std::vector<ExpertSteps>>& experts() const { return experts_; }
  void set_experts(std::int64_t layer, std::vector<ExpertSteps> experts);
  /// Forgets all moments, as if no update had been made. The rates of experts that warm up go on warming up.
  void restart();
  [[nodiscard]] const AdamWOptions& options() const { return options_; }
  [[nodiscard]] bool sharded() const { return options_.shards > 1; }
  void set_learning_rate(double rate) { options_.learning_rate = rate; }

 private:
  struct Group;
  [[nodiscard]] Rows own_rows(const at::Tensor& parameter) const;
  [[nodiscard]] bool per_expert(const ParameterSpec& spec) const;
  [[nodiscard]] double warmth(const ExpertSteps& expert) const;
  [[nodiscard]] bool alike(const std::vector<ExpertSteps>& experts) const;
  void send_counts(std::size_t layer);
  void advance_counts();
  void add(std::size_t index, std::vector<Group>& own, std::vector<Group>& library) const;
  void update_by_own_kernel(const Group& group) const;
  void update_by_library(Group& group) const;

  Model* model_;  // not owned
  AdamWOptions options_;
  std::vector<at::Tensor> moment1_, moment2_;
  at::Tensor rate_;  // fp64, on the device
  // experts_ as the device has it: by layer fp32 [2, experts]. The first row is `moments`. The second is
  // since_restart, and infinity for an expert that has been here since the start.
  std::vector<at::Tensor> expert_counts_;
  // On the device, where LibTorch's kernel reads them; for expert tensors views of expert_counts_.
  std::vector<at::Tensor> steps_;
  std::vector<std::vector<ExpertSteps>> experts_;
  // The host's copies of values on the device; NaN or empty if the host does not know the values.
  double device_rate_;
  std::vector<std::vector<float>> device_counts_;  // of expert_counts_
  std::vector<std::size_t> updated_;               // indices of the parameters that the last update() changed
};

}  // namespace fomoe::trainer
