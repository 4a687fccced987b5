#include "trainer/step/recorded_step.hpp"

#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "trainer/model/grouped_product.hpp"

namespace fomoe::trainer {

namespace {

// Makes the gradients fp32 (fp64 for fp64 models); autograd adds later ones to them in this type.
void widen_gradients(const Model& model) {
  const at::NoGradGuard no_grad;
  for (const Parameter& parameter : model.parameters()) {
    at::Tensor& gradient = parameter.compute.mutable_grad();
    if (gradient.defined()) gradient = gradient.to(parameter.master.scalar_type());
  }
}

std::vector<at::Tensor> copies_of_masters(const Model& model) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> copies;
  for (const Parameter& parameter : model.parameters()) copies.push_back(parameter.master.detach().clone());
  return copies;
}

// Overwrites `before`, because further tensors of this size cost more time than the sums.
at::Tensor distance_from(const Model& model, std::vector<at::Tensor>& before) {
  const at::NoGradGuard no_grad;
  at::Tensor square = at::zeros({}, before.front().options());
  for (std::size_t i = 0; i < before.size(); ++i)
    square += before[i].sub_(model.parameters()[i].master.detach()).square_().sum();
  return square.sqrt();
}

}  // namespace

at::Tensor add_gradient(const Model& model, const at::Tensor& tokens, const at::Tensor& targets,
                        Routing& routing, double balance_weight, double weight) {
  routing.balance.reset();
  const at::Tensor loss = model.loss(tokens, targets, &routing, /*at_layer=*/{}, weight);
  torch::autograd::variable_list roots = {loss}, gradients = {at::ones_like(loss)};
  if (routing.balance.defined()) {
    roots.push_back(routing.balance);
    gradients.push_back(at::full_like(routing.balance, weight * balance_weight));
  }
  torch::autograd::backward(roots, gradients);
  routing.balance.reset();
  if (weight < 1) widen_gradients(model);
  return loss.detach().to(at::kDouble) * weight;
}

at::Tensor gradient_norm(const Model& model) {
  const at::NoGradGuard no_grad;
  at::Tensor square = at::zeros({}, model.parameters().front().master.options());
  for (const Parameter& parameter : model.parameters()) {
    const at::Tensor gradient = parameter.compute.grad();
    if (gradient.defined()) square += gradient.to(parameter.master.scalar_type()).square().sum();
  }
  return square.sqrt();
}

void clip_gradients(const Model& model, const at::Tensor& norm, double most) {
  const at::NoGradGuard no_grad;
  const at::Tensor scale = (most / (norm + 1e-6)).clamp_max(1.0);
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.compute.grad().defined()) parameter.compute.mutable_grad().mul_(scale);
  }
}

std::string recording_refused(const costmodel::ModelShape& shape, at::Device device, at::ScalarType dtype) {
  if (!device.is_cuda()) return "the device is not a GPU";
  // The matrix products of a dense model never synchronise with the host.
  if (shape.experts > 0 && !grouped_on_device(device, dtype, {shape.d_model, shape.d_expert})) {
    return "the matrix products of the experts synchronise with the host; CUDA graphs need bf16, widths that "
           "are multiples of 8, and a GPU of compute capability 9.0 or 10.0";
  }
  return {};
}

RecordedStep::RecordedStep(Model& model, AdamW& optimizer, const Options& options)
    : model_(&model),
      optimizer_(&optimizer),
      options_(options),
      pool_(options.launches == Launches::by_graph ? graph_pool(model.options().device) : nullptr),
      first_{DeviceGraph(pool_), {}},
      next_{DeviceGraph(pool_), {}},
      update_(pool_) {}

// All of the first steps run directly, since recordings may read only gradients of other recordings.
bool RecordedStep::recordable(const Batch& batch, double weight) {
  if (!pool_) return false;
  if (size_ == 0) {
    size_ = batch.tokens.size(0);
    weight_ = weight;
  }
  return steps_ >= DeviceGraph::kPlainCalls && batch.tokens.size(0) == size_ && weight == weight_;
}

bool RecordedStep::has_recorded_gradients() const {
  if (gradients_.empty()) return false;
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    const at::Tensor gradient = model_->parameters()[i].compute.grad();
    if (gradient.defined() != gradients_[i].defined()) return false;
    if (gradient.defined() && !gradient.is_same(gradients_[i])) return false;
  }
  return true;
}

// Copies through pinned memory, so that the host need not wait for the copy.
void RecordedStep::take(at::Tensor& into, const at::Tensor& from) const {
  if (!into.defined()) into = at::empty(from.sizes(), from.options().device(model_->options().device));
  into.copy_(from.is_cpu() ? from.pin_memory() : from, /*non_blocking=*/true);
}

at::Tensor RecordedStep::micro_batch(const Batch& batch, Routing& routing, double weight) {
  const bool first = !model_->parameters().front().compute.grad().defined();
  if (!recordable(batch, weight) || (!first && !has_recorded_gradients())) {
    const at::Device device = model_->options().device;
    at::Tensor loss;
    first_.graph.plain([&] {
      loss = add_gradient(*model_, batch.tokens.to(device), batch.targets.to(device), routing,
                          options_.balance_weight, weight);
    });
    return loss;
  }
  Whole& whole = first ? first_ : next_;
  take(tokens_, batch.tokens);
  take(targets_, batch.targets);
  whole.graph.launch([&] {
    Routing own;
    own.counts = counts_;
    own.wants_balance = routing.wants_balance;
    if (first) {
      for (at::Tensor& counts : counts_) counts.zero_();
    }
    whole.loss = add_gradient(*model_, tokens_, targets_, own, options_.balance_weight, weight);
    counts_ = own.counts;
    if (!first) return;
    gradients_.clear();
    for (const Parameter& parameter : model_->parameters()) gradients_.push_back(parameter.compute.grad());
  });
  if (first) {
    for (std::size_t i = 0; i < gradients_.size(); ++i)
      model_->parameters()[i].compute.mutable_grad() = gradients_[i];
  }
  routing.counts = counts_;
  return whole.loss;
}

bool RecordedStep::update() {
  if (options_.skip_nonfinite && !std::isfinite(fomoe::trainer::gradient_norm(*model_).item<double>())) {
    model_->clear_gradients();
    return false;
  }
  const auto work = [this] {
    norm_ = options_.clip_norm > 0 || options_.norms ? fomoe::trainer::gradient_norm(*model_) : at::Tensor();
    if (options_.clip_norm > 0) clip_gradients(*model_, norm_, options_.clip_norm);
    std::vector<at::Tensor> before = options_.norms ? copies_of_masters(*model_) : std::vector<at::Tensor>();
    optimizer_->update();
    update_norm_ = options_.norms ? distance_from(*model_, before) : at::Tensor();
  };
  optimizer_->prepare();
  // LibTorch's kernel takes the warm-up of experts from the host, so its updates differ.
  if (has_recorded_gradients() && model_->own_kernels()) {
    update_.launch(work);
  } else {
    // Keep the gradients until the caller's stream waits for the update: other threads could otherwise reuse
    // their memory on that stream.
    std::vector<at::Tensor> gradients;
    for (const Parameter& parameter : model_->parameters()) gradients.push_back(parameter.compute.grad());
    update_.plain(work);
  }
  optimizer_->count();
  model_->clear_gradients();  // launching a recording leaves the gradients of the host's tensors set
  ++steps_;
  return true;
}

}  // namespace fomoe::trainer
