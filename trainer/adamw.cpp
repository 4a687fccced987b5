#include "trainer/adamw.hpp"

#include <algorithm>

namespace fomoe::trainer {

/// What one fused call updates: it takes one rate and one epsilon, and CompleteP has a few of each.
struct AdamW::Group {
  double rate_scale, epsilon_scale;
  std::vector<at::Tensor> masters, gradients, moment1, moment2, steps;

  void add(const at::Tensor& master, const at::Tensor& gradient, const at::Tensor& m, const at::Tensor& v,
           const at::Tensor& step) {
    masters.push_back(master);
    gradients.push_back(gradient.to(master.scalar_type()));  // no copy unless the model is bf16
    moment1.push_back(m);
    moment2.push_back(v);
    steps.push_back(step);
  }
};

AdamW::AdamW(Model& model, AdamWOptions options) : model_(&model), options_(options) {
  for (const Parameter& parameter : model.parameters()) {
    moment1_.push_back(at::zeros_like(parameter.master));
    moment2_.push_back(at::zeros_like(parameter.master));
    steps_.push_back(at::zeros({}, parameter.master.options().dtype(at::kFloat)));
  }
  for (std::int64_t layer = 0; layer < model.shape().layers; ++layer)
    experts_.emplace_back(local_experts(model.shape(), model.options().experts, layer).size());
}

AdamW::Group& AdamW::group_of(std::vector<Group>& groups, double rate_scale, double epsilon_scale) const {
  for (Group& group : groups) {
    if (group.rate_scale == rate_scale && group.epsilon_scale == epsilon_scale) return group;
  }
  groups.push_back({rate_scale, epsilon_scale, {}, {}, {}, {}, {}});
  return groups.back();
}

// Up, down and, where its columns are the local experts', the router.
void AdamW::add_expert_tensor(std::size_t index, const at::Tensor& gradient, std::vector<Group>& groups) {
  const ParameterSpec& spec = model_->parameters()[index].spec;
  const at::Tensor master = model_->parameters()[index].master.detach();
  const std::vector<ExpertSteps>& experts = experts_[static_cast<std::size_t>(spec.layer)];
  const auto rate_of = [&](const ExpertSteps& expert) {
    if (expert.since_restart < 0 || options_.restart_warmup_steps <= 0) return spec.rate_scale;
    return spec.rate_scale * std::min(1.0, (expert.since_restart + 1) / options_.restart_warmup_steps);
  };
  const bool alike = std::all_of(experts.begin(), experts.end(), [&](const ExpertSteps& expert) {
    return expert.moments == experts.front().moments && rate_of(expert) == rate_of(experts.front());
  });
  if (alike) {
    steps_[index].fill_(experts.front().moments);
    group_of(groups, rate_of(experts.front()), spec.epsilon_scale)
        .add(master, gradient, moment1_[index], moment2_[index], steps_[index]);
    return;
  }
  const std::int64_t dim = spec.role == Role::router ? 1 : 0;
  for (std::size_t e = 0; e < experts.size(); ++e) {
    const auto row = static_cast<std::int64_t>(e);
    group_of(groups, rate_of(experts[e]), spec.epsilon_scale)
        .add(master.select(dim, row), gradient.select(dim, row), moment1_[index].select(dim, row),
             moment2_[index].select(dim, row), at::full({}, experts[e].moments, steps_[index].options()));
  }
}

void AdamW::step() {
  const at::NoGradGuard no_grad;
  std::vector<Group> groups;
  std::vector<bool> layer_stepped(experts_.size(), false);
  for (std::size_t i = 0; i < model_->parameters().size(); ++i) {
    const Parameter& parameter = model_->parameters()[i];
    const at::Tensor gradient = parameter.compute.grad();
    if (!gradient.defined()) continue;
    const Role role = parameter.spec.role;
    const bool per_expert = role == Role::up || role == Role::down ||
                            (role == Role::router && !model_->options().experts.skip_token);
    if (per_expert) {
      layer_stepped[static_cast<std::size_t>(parameter.spec.layer)] = true;
      add_expert_tensor(i, gradient, groups);
    } else {
      group_of(groups, parameter.spec.rate_scale, parameter.spec.epsilon_scale)
          .add(parameter.master.detach(), gradient, moment1_[i], moment2_[i], steps_[i]);
    }
  }
  for (Group& group : groups) {
    // The kernel takes memory as it lies: router columns, which have strides, go through dense copies.
    std::vector<std::pair<at::Tensor, at::Tensor>> copies;
    const auto dense = [&](std::vector<at::Tensor>& tensors) {
      for (at::Tensor& tensor : tensors) {
        if (tensor.is_non_overlapping_and_dense()) continue;
        copies.emplace_back(tensor, tensor.contiguous());
        tensor = copies.back().second;
      }
    };
    dense(group.masters);
    dense(group.moment1);
    dense(group.moment2);
    for (std::size_t i = 0; i < group.gradients.size(); ++i) {
      if (group.gradients[i].strides() != group.masters[i].strides())
        group.gradients[i] = at::empty_like(group.masters[i]).copy_(group.gradients[i]);
    }
    at::_foreach_add_(group.steps, 1);  // the kernel wants the count of the update it is about to make
    at::_fused_adamw_(group.masters, group.gradients, group.moment1, group.moment2, /*max_exp_avg_sqs=*/{},
                      group.steps, options_.learning_rate * group.rate_scale, options_.beta1, options_.beta2,
                      options_.weight_decay, options_.epsilon * group.epsilon_scale, /*amsgrad=*/false,
                      /*maximize=*/false);
    for (auto& [tensor, copy] : copies) tensor.copy_(copy);
  }
  for (std::size_t layer = 0; layer < experts_.size(); ++layer) {
    if (!layer_stepped[layer]) continue;
    for (ExpertSteps& expert : experts_[layer]) {
      expert.moments += 1;
      if (expert.since_restart >= 0) expert.since_restart += 1;
    }
  }
  model_->clear_gradients();
  model_->refresh_compute_weights();
}

}  // namespace fomoe::trainer
