#include "trainer/optimizer/adamw.hpp"

#include <algorithm>
#include <limits>

#include "trainer/kernels/adam/adam.hpp"

namespace fomoe::trainer {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

at::Tensor copy_of(const Parameter& parameter) {
  return parameter.compute.is_same(parameter.master) ? at::Tensor() : parameter.compute.detach();
}

}  // namespace

/// The tensors of one fused call. A call takes one learning rate and one epsilon, but CompleteP has several
/// values of each.
struct AdamW::Group {
  double rate_scale, epsilon_scale;
  std::vector<at::Tensor> masters, gradients, moment1, moment2, steps;
  std::vector<at::Tensor> copies;  // the bf16 copies of whole parameters; undefined without bf16

  void add(const at::Tensor& master, const at::Tensor& gradient, const at::Tensor& m, const at::Tensor& v,
           const at::Tensor& step, const at::Tensor& copy = {}) {
    masters.push_back(master);
    gradients.push_back(gradient);
    moment1.push_back(m);
    moment2.push_back(v);
    steps.push_back(step);
    copies.push_back(copy);
  }
};

AdamW::AdamW(Model& model, AdamWOptions options)
    : model_(&model), options_(options), device_rate_(kUnknown), device_steps_(model.parameters().size(), 0) {
  for (const Parameter& parameter : model.parameters()) {
    moment1_.push_back(at::zeros_like(parameter.master));
    moment2_.push_back(at::zeros_like(parameter.master));
    steps_.push_back(at::zeros({}, parameter.master.options().dtype(at::kFloat)));
  }
  rate_ = at::zeros({}, steps_.front().options().dtype(at::kDouble));
  for (std::int64_t layer = 0; layer < model.shape().layers; ++layer)
    experts_.emplace_back(local_experts(model.shape(), model.options().experts, layer).size());
}

// Whether the parameter has a row or column for each local expert: up, down and, without skip-token, the
// router.
bool AdamW::per_expert(const ParameterSpec& spec) const {
  return spec.role == Role::up || spec.role == Role::down ||
         (spec.role == Role::router && !model_->options().experts.skip_token);
}

/// The factor of an expert's learning rate during its warm-up.
double AdamW::warmth(const ExpertSteps& expert) const {
  if (expert.since_restart < 0 || options_.restart_warmup_steps <= 0) return 1;
  return std::min(1.0, (expert.since_restart + 1) / options_.restart_warmup_steps);
}

bool AdamW::alike(const std::vector<ExpertSteps>& experts) const {
  return std::all_of(experts.begin(), experts.end(), [&](const ExpertSteps& expert) {
    return expert.moments == experts.front().moments && warmth(expert) == warmth(experts.front());
  });
}

bool AdamW::all_alike() const {
  return std::all_of(experts_.begin(), experts_.end(), [&](const std::vector<ExpertSteps>& experts) {
    return experts.empty() || alike(experts);
  });
}

bool AdamW::settled() const {
  return all_alike() &&
         std::all_of(experts_.begin(), experts_.end(), [&](const std::vector<ExpertSteps>& experts) {
           return experts.empty() || warmth(experts.front()) == 1;
         });
}

void AdamW::set_experts(std::int64_t layer, std::vector<ExpertSteps> experts) {
  experts_.at(static_cast<std::size_t>(layer)) = std::move(experts);
  for (std::size_t i = 0; i < device_steps_.size(); ++i) {
    if (model_->parameters()[i].spec.layer == layer) device_steps_[i] = kUnknown;
  }
}

AdamW::Group& AdamW::group_of(std::vector<Group>& groups, double rate_scale, double epsilon_scale) const {
  for (Group& group : groups) {
    if (group.rate_scale == rate_scale && group.epsilon_scale == epsilon_scale) return group;
  }
  groups.push_back({rate_scale, epsilon_scale, {}, {}, {}, {}, {}, {}});
  return groups.back();
}

void AdamW::add_expert_tensor(std::size_t index, const at::Tensor& gradient, std::vector<Group>& groups) {
  const Parameter& parameter = model_->parameters()[index];
  const ParameterSpec& spec = parameter.spec;
  const at::Tensor master = parameter.master.detach();
  const std::vector<ExpertSteps>& experts = experts_[static_cast<std::size_t>(spec.layer)];
  if (alike(experts)) {
    group_of(groups, spec.rate_scale * warmth(experts.front()), spec.epsilon_scale)
        .add(master, gradient, moment1_[index], moment2_[index], steps_[index], copy_of(parameter));
    return;
  }
  const std::int64_t dim = spec.role == Role::router ? 1 : 0;
  for (std::size_t e = 0; e < experts.size(); ++e) {
    const auto row = static_cast<std::int64_t>(e);
    group_of(groups, spec.rate_scale * warmth(experts[e]), spec.epsilon_scale)
        .add(master.select(dim, row), gradient.select(dim, row), moment1_[index].select(dim, row),
             moment2_[index].select(dim, row), at::full({}, experts[e].moments, steps_[index].options()));
  }
}

void AdamW::step() {
  prepare();
  update();
  count();
}

void AdamW::prepare() {
  const at::NoGradGuard no_grad;
  if (device_rate_ != options_.learning_rate) rate_.fill_(device_rate_ = options_.learning_rate);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const ParameterSpec& spec = model_->parameters()[i].spec;
    if (!per_expert(spec)) continue;
    const std::vector<ExpertSteps>& experts = experts_[static_cast<std::size_t>(spec.layer)];
    if (!experts.empty() && alike(experts) && device_steps_[i] != experts.front().moments)
      steps_[i].fill_(device_steps_[i] = experts.front().moments);
  }
}

void AdamW::update() {
  const at::NoGradGuard no_grad;
  std::vector<Group> groups;
  updated_.clear();
  for (std::size_t i = 0; i < model_->parameters().size(); ++i) {
    const Parameter& parameter = model_->parameters()[i];
    const at::Tensor gradient = parameter.compute.grad();
    if (!gradient.defined()) continue;
    updated_.push_back(i);
    if (per_expert(parameter.spec)) {
      add_expert_tensor(i, gradient, groups);
    } else {
      group_of(groups, parameter.spec.rate_scale, parameter.spec.epsilon_scale)
          .add(parameter.master.detach(), gradient, moment1_[i], moment2_[i], steps_[i], copy_of(parameter));
    }
  }
  // Our own kernel writes the copies of whole parameters, so it cannot be used while experts are updated
  // separately.
  const bool own = model_->own_kernels() && all_alike();
  for (Group& group : groups) own ? update_by_own_kernel(group) : update_by_library(group);
  model_->clear_gradients();
  if (!own) model_->refresh_compute_weights();
}

void AdamW::update_by_own_kernel(Group& group) const {
  for (std::size_t i = 0; i < group.gradients.size(); ++i) {
    if (group.gradients[i].strides() != group.masters[i].strides()) {
      group.gradients[i] =
          at::empty_like(group.masters[i], group.gradients[i].scalar_type()).copy_(group.gradients[i]);
    }
  }
  at::_foreach_add_(group.steps, 1);  // the kernel takes the count that includes this update
  adam_step({group.masters, group.moment1, group.moment2, group.gradients, group.copies, group.steps},
            {rate_, group.rate_scale, options_.beta1, options_.beta2, options_.epsilon * group.epsilon_scale,
             options_.weight_decay});
}

void AdamW::update_by_library(Group& group) const {
  // The kernel needs dense memory. Columns of the router have strides, so they are copied to dense tensors.
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
    if (group.gradients[i].strides() != group.masters[i].strides()) {
      group.gradients[i] = at::empty_like(group.masters[i]).copy_(group.gradients[i]);
    } else {
      // copies only if the gradient is bf16
      group.gradients[i] = group.gradients[i].to(group.masters[i].scalar_type());
    }
  }
  at::_foreach_add_(group.steps, 1);  // the kernel takes the count that includes this update
  at::Tensor rate = rate_ * group.rate_scale;
  if (rate.is_cuda()) rate = rate.to(at::kFloat);  // LibTorch's CUDA kernel reads only fp32
  at::_fused_adamw_(group.masters, group.gradients, group.moment1, group.moment2, /*max_exp_avg_sqs=*/{},
                    group.steps, rate, options_.beta1, options_.beta2, options_.weight_decay,
                    options_.epsilon * group.epsilon_scale, /*amsgrad=*/false, /*maximize=*/false);
  for (auto& [tensor, copy] : copies) tensor.copy_(copy);
}

void AdamW::count() {
  std::vector<bool> layer_stepped(experts_.size(), false);
  for (const std::size_t i : updated_) {
    const ParameterSpec& spec = model_->parameters()[i].spec;
    if (!per_expert(spec)) continue;
    const auto layer = static_cast<std::size_t>(spec.layer);
    layer_stepped[layer] = true;
    device_steps_[i] = alike(experts_[layer]) ? device_steps_[i] + 1 : kUnknown;
  }
  for (std::size_t layer = 0; layer < experts_.size(); ++layer) {
    if (!layer_stepped[layer]) continue;
    for (ExpertSteps& expert : experts_[layer]) {
      expert.moments += 1;
      if (expert.since_restart >= 0) expert.since_restart += 1;
    }
  }
}

}  // namespace fomoe::trainer
