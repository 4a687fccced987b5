#include "trainer/gradient_pass.hpp"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

namespace fomoe::trainer {

GradientPass::GradientPass(const Model& model, Batches& batches, Routing& routing, double balance_weight,
                           const Part& part)
    : model_(&model), batches_(&batches), routing_(&routing), balance_weight_(balance_weight), part_(part) {
  if (part_.micro_batch <= 0) part_.micro_batch = part_.count;
}

void GradientPass::micro_batches(bool but_the_last) {
  while (done_ < part_.count) {
    const std::int64_t size = std::min(part_.micro_batch, part_.count - done_);
    if (but_the_last && done_ + size == part_.count) return;
    forward_one(size, {});
    backward(0);
  }
}

void GradientPass::forward(const std::set<std::int64_t>& stops) {
  micro_batches(/*but_the_last=*/true);
  forward_one(part_.count - done_, stops);
}

void GradientPass::forward_one(std::int64_t size, const std::set<std::int64_t>& stops) {
  const Batch batch = batches_->of_step(part_.step, part_.first + done_, size);
  const at::Device device = model_->options().device;
  stages_ = {Stage{0, {}, {}, {}}};
  const auto close = [&](const at::Tensor& output) {
    stages_.back().output = output;
    stages_.back().balance = std::exchange(routing_->balance, at::Tensor());
  };
  routing_->balance.reset();
  share_ = static_cast<double>(size) / static_cast<double>(part_.count);
  const auto cut = [&](std::int64_t layer, const at::Tensor& x) {
    if (layer == 0 || !stops.contains(layer)) return x;
    close(x);
    stages_.push_back({layer, x.detach().requires_grad_(), {}, {}});
    return stages_.back().input;
  };
  const at::Tensor loss =
      model_->loss(batch.tokens.to(device), batch.targets.to(device), routing_, cut, share_);
  close(loss);
  const at::Tensor share_of_loss = loss.detach().to(at::kDouble) * share_;
  loss_ = loss_.defined() ? loss_ + share_of_loss : share_of_loss;
  done_ += size;
}

void GradientPass::backward(std::int64_t down_to) {
  while (!stages_.empty() && stages_.back().begin >= down_to) {
    const Stage stage = std::move(stages_.back());
    stages_.pop_back();
    // The last stage starts at the loss, which knows its share.
    const bool of_loss = !upstream_.defined();
    torch::autograd::variable_list roots = {stage.output},
                                   gradients = {of_loss ? at::ones_like(stage.output)
                                                        : std::exchange(upstream_, at::Tensor())};
    if (stage.balance.defined()) {
      roots.push_back(stage.balance);
      gradients.push_back(at::full_like(stage.balance, share_ * balance_weight_));
    }
    torch::autograd::backward(roots, gradients);
    if (stage.input.defined()) upstream_ = stage.input.grad();
  }
}

}  // namespace fomoe::trainer
