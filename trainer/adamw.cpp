#include "trainer/adamw.hpp"

#include <map>
#include <utility>

namespace fomoe::trainer {

AdamW::AdamW(Model& model, AdamWOptions options) : model_(&model), options_(options) {
  for (const Parameter& parameter : model.parameters()) {
    moment1_.push_back(at::zeros_like(parameter.master));
    moment2_.push_back(at::zeros_like(parameter.master));
    steps_.push_back(at::zeros({}, parameter.master.options().dtype(at::kFloat)));
  }
}

void AdamW::step() {
  const at::NoGradGuard no_grad;
  struct Group {
    std::vector<at::Tensor> masters, gradients, moment1, moment2, steps;
  };
  // The fused call takes one rate and one epsilon, and CompleteP has a few of each: one call for each pair.
  std::map<std::pair<double, double>, Group> groups;
  for (std::size_t i = 0; i < model_->parameters().size(); ++i) {
    const Parameter& parameter = model_->parameters()[i];
    const at::Tensor gradient = parameter.compute.grad();
    if (!gradient.defined()) continue;
    Group& group = groups[{parameter.spec.rate_scale, parameter.spec.epsilon_scale}];
    group.masters.push_back(parameter.master.detach());
    group.gradients.push_back(
        gradient.to(parameter.master.scalar_type()));  // no copy unless the model is bf16
    group.moment1.push_back(moment1_[i]);
    group.moment2.push_back(moment2_[i]);
    group.steps.push_back(steps_[i]);
  }
  for (auto& [scale, group] : groups) {
    at::_foreach_add_(group.steps, 1);  // the kernel wants the count of the update it is about to make
    at::_fused_adamw_(group.masters, group.gradients, group.moment1, group.moment2, /*max_exp_avg_sqs=*/{},
                      group.steps, options_.learning_rate * scale.first, options_.beta1, options_.beta2,
                      options_.weight_decay, options_.epsilon * scale.second, /*amsgrad=*/false,
                      /*maximize=*/false);
  }
  model_->clear_gradients();
  model_->refresh_compute_weights();
}

}  // namespace fomoe::trainer
