#include "trainer/whole/evaluation.hpp"

#include <algorithm>

namespace fomoe::trainer {

double validation_loss(const Model& model, const Batches& batches, std::int64_t most, Routing* routing) {
  const at::NoGradGuard no_grad;
  const std::int64_t all = batches.validation_sequences();
  const at::Device device = model.options().device;
  double sum = 0;
  for (std::int64_t first = 0; first < all; first += most) {
    const std::int64_t count = std::min(most, all - first);
    const Batch batch = batches.validation(first, count);
    sum += static_cast<double>(count) *
           model.loss(batch.tokens.to(device), batch.targets.to(device), routing).item<double>();
  }
  return sum / static_cast<double>(all);
}

EvaluationLoss evaluation_loss(const Model& model, const Batches& batches, std::int64_t most) {
  const std::int64_t all = batches.validation_sequences();
  const at::Device device = model.options().device;
  std::vector<at::Tensor> losses;
  for (std::int64_t first = 0; first < all; first += most) {
    const Batch batch = batches.validation(first, std::min(most, all - first));
    losses.push_back(model.sequence_losses(batch.tokens.to(device), batch.targets.to(device)));
  }
  const at::Tensor of_sequences = at::cat(losses);
  return {of_sequences.mean().item<double>(), all > 1 ? of_sequences.std().item<double>() : 0};
}

Model model_of(const WholeModel& whole, at::Device device, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  ModelOptions options;
  options.device = device;
  options.dtype = dtype;
  options.constants = whole.constants;
  options.experts.skip_token = whole.skip_token;
  Model model(whole.shape, options);
  for (const Parameter& parameter : model.parameters())
    parameter.master.detach().copy_(whole.tensors.at(parameter.spec.name()));
  model.refresh_compute_weights();
  return model;
}

}  // namespace fomoe::trainer
