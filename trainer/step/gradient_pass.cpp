#include "trainer/step/gradient_pass.hpp"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

namespace fomoe::trainer {

GradientPass::GradientPass(RecordedStep& step, Batches& batches, Routing& routing, const Part& part)
    : step_(&step), batches_(&batches), routing_(&routing), part_(part) {
  if (part_.micro_batch <= 0) part_.micro_batch = part_.count;
  if (part_.of <= 0) part_.of = part_.count;
}

void GradientPass::add_to_loss(const at::Tensor& share_of_loss, std::int64_t size) {
  loss_ =
      loss_.defined() ? loss_ + share_of_loss : share_of_loss.clone();  // the step may overwrite its tensor
  done_ += size;
}

void GradientPass::micro_batches(bool but_the_last) {
  while (done_ < part_.count) {
    const std::int64_t size = std::min(part_.micro_batch, part_.count - done_);
    if (but_the_last && done_ + size == part_.count) return;
    const double share = static_cast<double>(size) / static_cast<double>(part_.of);
    const Batch batch = batches_->of_step(part_.step, part_.first + done_, size);
    add_to_loss(step_->micro_batch(batch, *routing_, share), size);
  }
}

void GradientPass::forward(const std::set<std::int64_t>& stops) {
  micro_batches(/*but_the_last=*/true);
  const std::int64_t size = part_.count - done_;
  const Batch batch = batches_->of_step(part_.step, part_.first + done_, size);
  const at::Device device = step_->model().options().device;
  stages_ = {Stage{0, {}, {}, {}}};
  const auto close = [&](const at::Tensor& output) {
    stages_.back().output = output;
    stages_.back().balance = std::exchange(routing_->balance, at::Tensor());
  };
  routing_->balance.reset();
  share_ = static_cast<double>(size) / static_cast<double>(part_.of);
  const auto cut = [&](std::int64_t layer, const at::Tensor& x) {
    if (layer == 0 || !stops.contains(layer)) return x;
    close(x);
    stages_.push_back({layer, x.detach().requires_grad_(), {}, {}});
    return stages_.back().input;
  };
  const at::Tensor loss =
      step_->model().loss(batch.tokens.to(device), batch.targets.to(device), routing_, cut, share_);
  close(loss);
  add_to_loss(loss.detach().to(at::kDouble) * share_, size);
}

void GradientPass::backward(std::int64_t down_to) {
  while (!stages_.empty() && stages_.back().begin >= down_to) {
    const Stage stage = std::move(stages_.back());
    stages_.pop_back();
    // The last stage starts at the loss with gradient 1, since the loss itself applies the weight share_.
    const bool of_loss = !upstream_.defined();
    torch::autograd::variable_list roots = {stage.output},
                                   gradients = {of_loss ? at::ones_like(stage.output)
                                                        : std::exchange(upstream_, at::Tensor())};
    if (stage.balance.defined()) {
      roots.push_back(stage.balance);
      gradients.push_back(at::full_like(stage.balance, share_ * step_->options().balance_weight));
    }
    torch::autograd::backward(roots, gradients);
    if (stage.input.defined()) upstream_ = stage.input.grad();
  }
}

}  // namespace fomoe::trainer
