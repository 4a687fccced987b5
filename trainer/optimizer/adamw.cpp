#include "trainer/optimizer/adamw.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "trainer/kernels/adam/adam.hpp"

namespace fomoe::trainer {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr float kNever = std::numeric_limits<float>::infinity();

/// A row of AdamW::expert_counts_.
enum CountRow : std::int64_t { kMoments = 0, kSinceRestart = 1 };

at::Tensor copy_of(const Parameter& parameter) {
  return parameter.compute.is_same(parameter.master) ? at::Tensor() : parameter.compute.detach();
}

/// The gradient in the layout of the master.
at::Tensor gradient_of(const Parameter& parameter) {
  const at::Tensor& gradient = parameter.compute.grad();
  if (gradient.strides() == parameter.master.strides()) return gradient;
  return at::empty_like(parameter.master, gradient.scalar_type()).copy_(gradient);
}

/// The rows of AdamW::expert_counts_ one after the other.
std::vector<float> counts_of(const std::vector<ExpertSteps>& experts) {
  std::vector<float> out;
  for (const ExpertSteps& expert : experts) out.push_back(static_cast<float>(expert.moments));
  for (const ExpertSteps& expert : experts)
    out.push_back(expert.since_restart < 0 ? kNever : static_cast<float>(expert.since_restart));
  return out;
}

}  // namespace

Rows rows_of_shard(const at::Tensor& parameter, int shard, int shards) {
  const std::int64_t rows = parameter.size(0), width = parameter.numel() / std::max<std::int64_t>(1, rows);
  const std::int64_t together =
      16 / std::gcd<std::int64_t>(16, width);  // rows with a multiple of 16 elements
  const auto begin = [&](int of) { return of == shards ? rows : rows * of / shards / together * together; };
  return {begin(shard), begin(shard + 1) - begin(shard)};
}

Rows AdamW::own_rows(const at::Tensor& parameter) const {
  return rows_of_shard(parameter, options_.shard, options_.shards);
}

/// The tensors of one call of a kernel. A call takes one factor of the learning rate and one epsilon, but
/// CompleteP has several values of each.
struct AdamW::Group {
  double rate_scale, epsilon_scale, weight_decay;
  AdamTensors tensors;

  static AdamTensors& in(std::vector<Group>& groups, double rate_scale, double epsilon_scale,
                         double weight_decay) {
    for (Group& group : groups) {
      if (group.rate_scale == rate_scale && group.epsilon_scale == epsilon_scale &&
          group.weight_decay == weight_decay)
        return group.tensors;
    }
    groups.push_back({rate_scale, epsilon_scale, weight_decay, {}});
    return groups.back().tensors;
  }
};

AdamW::AdamW(Model& model, AdamWOptions options) : model_(&model), options_(options), device_rate_(kUnknown) {
  const at::TensorOptions fp32 = model.parameters().front().master.options().dtype(at::kFloat);
  for (std::int64_t layer = 0; layer < model.shape().layers; ++layer) {
    const std::vector<int> local = local_experts(model.shape(), model.options().experts, layer);
    experts_.emplace_back(local.size());
    expert_counts_.push_back(at::zeros({2, static_cast<std::int64_t>(local.size())}, fp32));
  }
  device_counts_.resize(experts_.size());
  for (const Parameter& parameter : model.parameters()) {
    const at::Tensor own = own_rows(parameter.master).of(parameter.master.detach());
    moment1_.push_back(at::zeros_like(own));
    moment2_.push_back(at::zeros_like(own));
    steps_.push_back(per_expert(parameter.spec)
                         ? expert_counts_[static_cast<std::size_t>(parameter.spec.layer)][kMoments][0]
                         : at::zeros({}, fp32));
  }
  rate_ = at::zeros({}, fp32.dtype(at::kDouble));
}

bool AdamW::per_expert(const ParameterSpec& spec) const {
  return expert_dim(spec, model_->options().experts.skip_token) >= 0;
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

void AdamW::set_experts(std::int64_t layer, std::vector<ExpertSteps> experts) {
  std::vector<ExpertSteps>& mine = experts_.at(static_cast<std::size_t>(layer));
  TORCH_CHECK(experts.size() == mine.size(), "set_experts: got ", experts.size(), " experts; expected ",
              mine.size());
  mine = std::move(experts);
  device_counts_[static_cast<std::size_t>(layer)].clear();
}

void AdamW::restart() {
  const at::NoGradGuard no_grad;
  for (const std::vector<at::Tensor>* tensors : {&moment1_, &moment2_, &steps_}) {
    for (at::Tensor tensor : *tensors) tensor.zero_();
  }
  for (std::vector<ExpertSteps>& layer : experts_) {
    for (ExpertSteps& expert : layer) expert.moments = 0;
  }
  for (std::vector<float>& counts : device_counts_) counts.clear();
}

void AdamW::step() {
  prepare();
  update();
  count();
}

void AdamW::prepare() {
  const at::NoGradGuard no_grad;
  if (device_rate_ != options_.learning_rate) rate_.fill_(device_rate_ = options_.learning_rate);
  for (std::size_t layer = 0; layer < experts_.size(); ++layer) send_counts(layer);
}

// A count that is no integer is rounded anew after each update, as the host's fp64 count has it. So a run
// that continues from a checkpoint has the counts of an uninterrupted one.
void AdamW::send_counts(std::size_t layer) {
  std::vector<float> counts = counts_of(experts_[layer]);
  if (counts == device_counts_[layer]) return;
  expert_counts_[layer].copy_(at::from_blob(counts.data(), expert_counts_[layer].sizes(), at::kFloat));
  device_counts_[layer] = std::move(counts);
}

// The kernels take the counts that include this update.
void AdamW::advance_counts() {
  std::vector<at::Tensor> counts;
  std::vector<bool> listed(experts_.size(), false);
  for (const std::size_t i : updated_) {
    const ParameterSpec& spec = model_->parameters()[i].spec;
    if (!per_expert(spec)) {
      counts.push_back(steps_[i]);
    } else if (const auto layer = static_cast<std::size_t>(spec.layer); !listed[layer]) {
      listed[layer] = true;
      counts.push_back(expert_counts_[layer]);
    }
  }
  if (!counts.empty()) at::_foreach_add_(counts, 1);
}

// Adds the parameter to a group of our own kernel or of LibTorch's.
void AdamW::add(std::size_t index, std::vector<Group>& own, std::vector<Group>& library) const {
  const Parameter& parameter = model_->parameters()[index];
  const ParameterSpec& spec = parameter.spec;
  const auto layer = static_cast<std::size_t>(std::max<std::int64_t>(spec.layer, 0));
  const bool has_experts = per_expert(spec),
             by_own = model_->own_kernels() || (has_experts && !alike(experts_[layer]));
  // LibTorch's kernel takes the warm-up as a factor of the rate; our own kernel computes it from the counts.
  const double warm = has_experts && !by_own ? warmth(experts_[layer].front()) : 1;
  const bool scales = options_.complete_p, norm = spec.decay_scale() == 0;
  const double rate_scale = scales ? spec.rate_scale : 1, epsilon_scale = scales ? spec.epsilon_scale : 1,
               decay = options_.weight_decay * (scales || norm ? spec.decay_scale() : 1);
  AdamTensors& tensors = Group::in(by_own ? own : library, rate_scale * warm, epsilon_scale, decay);
  const Rows rows = own_rows(parameter.master);
  if (rows.count == 0) return;
  const std::int64_t dim = expert_dim(spec, model_->options().experts.skip_token);
  const at::Tensor copy = copy_of(parameter);
  tensors.masters.push_back(rows.of(parameter.master.detach()));
  tensors.moment1.push_back(moment1_[index]);
  tensors.moment2.push_back(moment2_[index]);
  tensors.gradients.push_back(rows.of(gradient_of(parameter)));
  tensors.copies.push_back(copy.defined() ? rows.of(copy) : copy);
  const bool vectors = has_experts && by_own;
  const auto counts = [&](CountRow row) {
    const at::Tensor of_all = expert_counts_[layer][row];
    return dim == 0 ? rows.of(of_all) : of_all;  // the rows of such a tensor are its experts
  };
  tensors.updates.push_back(vectors ? counts(kMoments) : steps_[index]);
  tensors.ages.push_back(vectors ? counts(kSinceRestart) : at::Tensor());
  tensors.expert_dims.push_back(dim);
}

void AdamW::update() {
  const at::NoGradGuard no_grad;
  std::vector<Group> own, library;
  updated_.clear();
  for (std::size_t i = 0; i < model_->parameters().size(); ++i) {
    if (!model_->parameters()[i].compute.grad().defined()) continue;
    updated_.push_back(i);
    add(i, own, library);
  }
  advance_counts();
  // A group is empty if its parameters have fewer rows than there are shards.
  for (const Group& group : own) {
    if (!group.tensors.masters.empty()) update_by_own_kernel(group);
  }
  for (Group& group : library) {
    if (!group.tensors.masters.empty()) update_by_library(group);
  }
  model_->clear_gradients();
  if (!library.empty()) model_->refresh_compute_weights();  // our own kernel writes the copies
}

void AdamW::update_by_own_kernel(const Group& group) const {
  adam_step(group.tensors,
            {rate_, group.rate_scale, options_.beta1, options_.beta2, options_.epsilon * group.epsilon_scale,
             group.weight_decay, options_.restart_warmup_steps});
}

void AdamW::update_by_library(Group& group) const {
  AdamTensors& tensors = group.tensors;
  for (std::size_t i = 0; i < tensors.gradients.size(); ++i)  // copies only if the gradient is bf16
    tensors.gradients[i] = tensors.gradients[i].to(tensors.masters[i].scalar_type());
  at::Tensor rate = rate_ * group.rate_scale;
  if (rate.is_cuda()) rate = rate.to(at::kFloat);  // LibTorch's CUDA kernel reads only fp32
  at::_fused_adamw_(tensors.masters, tensors.gradients, tensors.moment1, tensors.moment2,
                    /*max_exp_avg_sqs=*/{}, tensors.updates, rate, options_.beta1, options_.beta2,
                    group.weight_decay, options_.epsilon * group.epsilon_scale, /*amsgrad=*/false,
                    /*maximize=*/false);
}

void AdamW::count() {
  std::vector<bool> layer_stepped(experts_.size(), false);
  for (const std::size_t i : updated_) {
    const ParameterSpec& spec = model_->parameters()[i].spec;
    if (per_expert(spec)) layer_stepped[static_cast<std::size_t>(spec.layer)] = true;
  }
  for (std::size_t layer = 0; layer < experts_.size(); ++layer) {
    if (!layer_stepped[layer]) continue;
    for (float& count : device_counts_[layer]) count += 1;
    for (ExpertSteps& expert : experts_[layer]) {
      expert.moments += 1;
      if (expert.since_restart >= 0) expert.since_restart += 1;
    }
  }
}

}  // namespace fomoe::trainer
