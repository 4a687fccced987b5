#include "trainer/step/recorded_step.hpp"

#include <torch/csrc/autograd/autograd.h>

#include "trainer/model/grouped_product.hpp"

namespace fomoe::trainer {

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
  return loss.detach().to(at::kDouble) * weight;
}

void clip_gradients(const Model& model, double norm) {
  const at::NoGradGuard no_grad;
  at::Tensor square;
  for (const Parameter& parameter : model.parameters()) {
    const at::Tensor gradient = parameter.compute.grad();
    if (!gradient.defined()) continue;
    const at::Tensor part = gradient.to(parameter.master.scalar_type()).square().sum();
    square = square.defined() ? square + part : part;
  }
  if (!square.defined()) return;
  const at::Tensor scale = (norm / (square.sqrt() + 1e-6)).clamp_max(1.0);
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.compute.grad().defined()) parameter.compute.mutable_grad().mul_(scale);
  }
}

std::string recording_refused(const costmodel::ModelShape& shape, at::Device device, at::ScalarType dtype) {
  if (!device.is_cuda()) return "the device is not a GPU";
  if (!grouped_on_device(device, dtype, {shape.d_model, shape.d_expert})) {
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

void RecordedStep::update() {
  const auto work = [this] {
    if (options_.clip_norm > 0) clip_gradients(*model_, options_.clip_norm);
    optimizer_->update();
  };
  optimizer_->prepare();
  const bool settled = optimizer_->settled();
  if (has_recorded_gradients() && settled && settled_before_) {
    update_.launch(work);
  } else {
    // Keep the gradients until the caller's stream waits for the update: other threads could otherwise reuse
    // their memory on that stream.
    std::vector<at::Tensor> gradients;
    for (const Parameter& parameter : model_->parameters()) gradients.push_back(parameter.compute.grad());
    update_.plain(work);
    settled_before_ = settled_before_ || settled;
  }
  optimizer_->count();
  model_->clear_gradients();  // launching a recording leaves the gradients of the host's tensors set
  ++steps_;
}

}  // namespace fomoe::trainer
