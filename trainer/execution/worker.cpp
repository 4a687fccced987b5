#include "trainer/execution/worker.hpp"

#include <algorithm>
#include <stdexcept>

namespace fomoe::trainer {

using costmodel::Content;
using costmodel::Payload;

namespace {

std::vector<at::Tensor> masters_of(const Model& model) {
  std::vector<at::Tensor> out;
  for (const Parameter& parameter : model.parameters()) out.push_back(parameter.master.detach());
  return out;
}

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& tensor : tensors) out.push_back(tensor.clone());
  return out;
}

// Where a worker has no model, its members still have one, of a few parameters.
costmodel::ModelShape smallest_shape() {
  costmodel::ModelShape shape;
  shape.name = "stand-in";
  shape.d_model = 2;
  shape.layers = shape.heads = shape.dense_layers = shape.d_ffn = shape.sequence_length = 1;
  shape.vocabulary = 2;
  return shape;
}

void add_square(at::Tensor& sum, const at::Tensor& values) {
  const at::Tensor square = values.square().sum();
  sum = sum.defined() ? sum + square : square;
}

}  // namespace

ExpertChoice expert_choice(const costmodel::Placement* placement, costmodel::NodeId node, bool skip_token) {
  ExpertChoice choice;
  choice.skip_token = skip_token;
  if (placement == nullptr) return choice;
  for (int layer = 0; layer < placement->layers(); ++layer)
    choice.local.push_back(placement->local_experts(layer, node));
  return choice;
}

Worker::Worker(const costmodel::ModelShape& shape, const std::vector<costmodel::TensorGroup>& groups,
               const WorkerOptions& options)
    : groups_(groups),
      options_(options),
      model_(options.stand_in ? smallest_shape() : shape, options.model),
      inner_(model_, options.inner) {
  const std::vector<at::Tensor> masters = masters_of(model_);
  if (options_.keeps_anchor) anchor_ = copies_of(masters);
  if (options_.keeps_residual) {
    for (const at::Tensor& master : masters) residual_.push_back(at::zeros_like(master));
  }
  if (options_.outer) outer_.emplace(*options_.outer, masters);
}

std::vector<ParameterSlice> Worker::slices_of(const Payload& payload) const {
  std::vector<ParameterSlice> out;
  for (const costmodel::GroupId id : payload.groups) {
    const std::vector<ParameterSlice> more = slices(model_, groups_.at(static_cast<std::size_t>(id)));
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

at::Tensor Worker::part(Content content, const ParameterSlice& slice) {
  const Parameter& parameter = model_.parameters()[slice.parameter];
  switch (content) {
    case Content::parameter:
      return slice.of(parameter.master.detach());
    case Content::gradient:
      if (!parameter.compute.grad().defined())
        throw std::logic_error("the plan sends a gradient before it is computed: " + parameter.spec.name());
      return slice.of(parameter.compute.grad());
    case Content::moment1:
      return slice.of(inner_.moment1()[slice.parameter]);
    case Content::moment2:
      return slice.of(inner_.moment2()[slice.parameter]);
    case Content::outer_moment1:
    case Content::outer_moment2:
      if (!outer_) throw std::logic_error("the plan sends the outer state of a node that keeps none");
      return slice.of(
          (content == Content::outer_moment1 ? outer_->first() : outer_->second()).at(slice.parameter));
    case Content::pseudo_gradient:
      return slice.of(anchor_.at(slice.parameter)) - slice.of(parameter.master.detach());
    default:
      throw std::invalid_argument("the trainer has no tensors with this content");
  }
}

at::Tensor Worker::read(const Payload& payload) {
  const at::NoGradGuard no_grad;
  if (options_.stand_in) {
    std::int64_t elements = 0;
    for (const costmodel::GroupId id : payload.groups)
      elements += groups_.at(static_cast<std::size_t>(id)).elements;
    return at::zeros({elements}, at::TensorOptions().device(options_.model.device));
  }
  std::vector<at::Tensor> parts;
  for (const ParameterSlice& slice : slices_of(payload)) {
    at::Tensor values = part(payload.content, slice);
    if (!residual_.empty() && payload.content == Content::pseudo_gradient)
      values = at::add(values, slice.of(residual_[slice.parameter]), options_.residual_decay);
    parts.push_back(values.reshape({-1}).to(model_.parameters()[slice.parameter].master.scalar_type()));
  }
  return at::cat(parts);
}

void Worker::write(const Payload& payload, const at::Tensor& flat, Anchor anchor) {
  if (options_.stand_in) return;
  const at::NoGradGuard no_grad;
  std::int64_t begin = 0;
  for (const ParameterSlice& slice : slices_of(payload)) {
    const Parameter& parameter = model_.parameters()[slice.parameter];
    const at::Tensor shape = slice.of(parameter.master.detach());
    const at::Tensor values = flat.narrow(0, begin, shape.numel()).view(shape.sizes());
    begin += shape.numel();
    if (payload.content == Content::pseudo_gradient) {
      averages_.push_back({slice, values});
      continue;
    }
    part(payload.content, slice).copy_(values);
    if (payload.content != Content::parameter) continue;
    if (anchor == Anchor::replaced && !anchor_.empty()) slice.of(anchor_[slice.parameter]).copy_(values);
    cast(slice);
  }
}

// A payload may be one of thousands, so only its own part is cast.
void Worker::cast(const ParameterSlice& slice) {
  const Parameter& parameter = model_.parameters()[slice.parameter];
  if (!parameter.compute.is_same(parameter.master))
    slice.of(parameter.compute.detach()).copy_(slice.of(parameter.master.detach()));
}

void Worker::keep_residual(const Payload& payload, const at::Tensor& residual) {
  if (residual_.empty() || options_.stand_in) return;
  std::int64_t begin = 0;
  for (const ParameterSlice& slice : slices_of(payload)) {
    at::Tensor kept = slice.of(residual_[slice.parameter]);
    kept.copy_(residual.narrow(0, begin, kept.numel()).view(kept.sizes()));
    begin += kept.numel();
  }
}

void Worker::outer_step(bool whole, double kept_share, OuterNorms* norms) {
  const at::NoGradGuard no_grad;
  if (!outer_) throw std::logic_error("the plan has an outer step at a node that keeps no outer state");
  const auto merge = [&](const ParameterSlice& slice, const at::Tensor& difference) {
    at::Tensor anchor = slice.of(anchor_[slice.parameter]);
    const at::Tensor before = norms == nullptr ? at::Tensor() : anchor.clone();
    outer_->step(
        slice.parameter, [&](const at::Tensor& state) { return slice.of(state); }, anchor, difference);
    if (norms != nullptr) {
      add_square(norms->difference, difference);
      add_square(norms->update, anchor - before);
    }
    at::Tensor values = slice.of(model_.parameters()[slice.parameter].master.detach());
    if (kept_share == 0) {
      values.copy_(anchor);
    } else {
      values.mul_(kept_share).add_(anchor, 1 - kept_share);
    }
    cast(slice);
  };
  if (whole) {
    std::vector<at::Tensor> differences;
    for (std::size_t i = 0; i < anchor_.size(); ++i)
      differences.push_back(anchor_[i] - model_.parameters()[i].master.detach());
    for (const Average& average : averages_)
      average.slice.of(differences[average.slice.parameter]).copy_(average.value);
    for (std::size_t i = 0; i < anchor_.size(); ++i) merge({i, 0, 0, anchor_[i].size(0)}, differences[i]);
  } else {
    for (const Average& average : averages_)
      merge(average.slice, average.value.to(anchor_[average.slice.parameter].device()));
  }
  averages_.clear();
  if (norms == nullptr) return;
  for (at::Tensor* norm : {&norms->difference, &norms->update}) {
    if (norm->defined()) *norm = norm->sqrt();
  }
}

void Worker::zero_gradients() {
  const at::NoGradGuard no_grad;
  for (const Parameter& parameter : model_.parameters()) {
    at::Tensor& gradient = parameter.compute.mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(parameter.compute);
  }
}

template <class Visit>
void Worker::visit_expert_tensors(const Visit& visit) {
  for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
    const ParameterSpec& spec = model_.parameters()[i].spec;
    const std::int64_t dim = expert_dim(spec, model_.options().experts.skip_token);
    if (dim < 0) continue;
    const auto layer = static_cast<std::size_t>(spec.layer);
    visit(layer, dim, model_.parameters()[i].master.detach(), false);
    // With a sharded state, experts change only before the state is loaded.
    if (!inner_.sharded()) visit(layer, dim, inner_.moment1()[i], false);
    if (!inner_.sharded()) visit(layer, dim, inner_.moment2()[i], false);
    if (!anchor_.empty()) visit(layer, dim, anchor_[i], false);
    if (!residual_.empty()) visit(layer, dim, residual_[i], false);
    if (!outer_) continue;
    if (!outer_->first().empty()) visit(layer, dim, outer_->first()[i], true);
    if (!outer_->second().empty()) visit(layer, dim, outer_->second()[i], true);
  }
}

void Worker::change_experts(const ExpertChoice& next) {
  if (options_.stand_in) return;
  const at::NoGradGuard no_grad;
  constexpr std::int64_t kNew = -1;
  std::vector<std::vector<std::int64_t>> row_before;  // by layer and new row: the old row
  for (std::int64_t layer = 0; layer < model_.shape().layers; ++layer) {
    const std::vector<int> before = local_experts(model_.shape(), model_.options().experts, layer);
    const std::vector<int> after = local_experts(model_.shape(), next, layer);
    std::vector<std::int64_t>& rows = row_before.emplace_back();
    std::vector<ExpertSteps> steps;
    for (const int expert : after) {
      const auto found = std::lower_bound(before.begin(), before.end(), expert);
      const bool kept = found != before.end() && *found == expert;
      rows.push_back(kept ? found - before.begin() : kNew);
      steps.push_back(
          kept ? inner_.experts()[static_cast<std::size_t>(layer)][static_cast<std::size_t>(rows.back())]
               : ExpertSteps{0, 0});
    }
    inner_.set_experts(layer, std::move(steps));
  }
  visit_expert_tensors([&](std::size_t layer, std::int64_t dim, const at::Tensor& tensor, bool) {
    const at::Tensor before = tensor.clone();
    for (std::size_t row = 0; row < row_before[layer].size(); ++row) {
      at::Tensor values = tensor.select(dim, static_cast<std::int64_t>(row));
      const std::int64_t old_row = row_before[layer][row];
      if (old_row == kNew) {
        values.zero_();
      } else {
        values.copy_(before.select(dim, old_row));
      }
    }
  });
  model_.relabel_experts(next);
  model_.refresh_compute_weights();
}

void Worker::reset_outer_state(const std::vector<std::pair<int, int>>& experts) {
  if (options_.stand_in) return;
  for (const auto& [wanted_layer, expert] : experts) {
    const std::vector<int> local = local_experts(model_.shape(), model_.options().experts, wanted_layer);
    const auto found = std::lower_bound(local.begin(), local.end(), expert);
    if (found == local.end() || *found != expert) continue;
    visit_expert_tensors(
        [&, layer_index = static_cast<std::size_t>(wanted_layer)](
            std::size_t layer, std::int64_t dim, const at::Tensor& tensor, bool outer_state) {
          if (outer_state && layer == layer_index) tensor.select(dim, found - local.begin()).zero_();
        });
  }
}

void Worker::open_shards() {
  if (!inner_.sharded() || !whole_moment1_.empty()) return;
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
    const at::Tensor& master = model_.parameters()[i].master;
    const Rows rows = rows_of_shard(master, options_.inner.shard, options_.inner.shards);
    for (auto [whole, own] : {std::pair{&whole_moment1_, &inner_.moment1()[i]},
                              std::pair{&whole_moment2_, &inner_.moment2()[i]}}) {
      whole->push_back(at::zeros_like(master.detach()));
      rows.of(whole->back()).copy_(*own);
    }
  }
}

void Worker::close_shards() {
  if (whole_moment1_.empty()) return;
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
    const Rows rows =
        rows_of_shard(model_.parameters()[i].master, options_.inner.shard, options_.inner.shards);
    at::Tensor moment1 = inner_.moment1()[i], moment2 = inner_.moment2()[i];
    moment1.copy_(rows.of(whole_moment1_[i]));
    moment2.copy_(rows.of(whole_moment2_[i]));
  }
  whole_moment1_.clear();
  whole_moment2_.clear();
}

std::vector<std::pair<std::string, at::Tensor>> Worker::state() {
  const bool opened = !whole_moment1_.empty();
  if (inner_.sharded() && !opened) throw std::logic_error("the state is sharded, and has not been opened");
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
    const std::string name = model_.parameters()[i].spec.name();
    out.emplace_back(name, model_.parameters()[i].master.detach());
    out.emplace_back(name + ".moment1", opened ? whole_moment1_[i] : inner_.moment1()[i]);
    out.emplace_back(name + ".moment2", opened ? whole_moment2_[i] : inner_.moment2()[i]);
    out.emplace_back(name + ".steps", inner_.steps()[i]);
    if (!anchor_.empty()) out.emplace_back(name + ".anchor", anchor_[i]);
    if (!residual_.empty()) out.emplace_back(name + ".residual", residual_[i]);
    if (!outer_) continue;
    if (!outer_->first().empty()) out.emplace_back(name + ".outer1", outer_->first()[i]);
    if (!outer_->second().empty()) out.emplace_back(name + ".outer2", outer_->second()[i]);
  }
  return out;
}

}  // namespace fomoe::trainer
