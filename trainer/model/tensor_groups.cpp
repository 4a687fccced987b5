#include "trainer/model/tensor_groups.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace fomoe::trainer {

using costmodel::TensorClass;
using costmodel::TensorGroup;

namespace {

bool in_layers(const ParameterSpec& spec, const TensorGroup& group, std::int64_t layers) {
  switch (spec.role) {
    case Role::embedding:
      return true;
    case Role::embedding_norm:
      return group.layer_begin == 0;
    case Role::final_norm:
      return group.layer_end == layers;
    default:
      return group.layer_begin <= spec.layer && spec.layer < group.layer_end;
  }
}

// Local experts are sorted by id, so that a range of expert ids is a range of positions.
ParameterSlice expert_slice(const Model& model, std::size_t index, const TensorGroup& group) {
  const ParameterSpec& spec = model.parameters()[index].spec;
  const std::int64_t dim = spec.role == Role::router ? 1 : 0;
  if (spec.role == Role::router && model.options().experts.skip_token) {
    return {index, dim, group.expert_begin, group.expert_end};  // the router has all columns
  }
  const std::vector<int> local = local_experts(model.shape(), model.options().experts, spec.layer);
  const auto first = std::lower_bound(local.begin(), local.end(), group.expert_begin);
  const auto last = std::lower_bound(local.begin(), local.end(), group.expert_end);
  if (last - first != group.expert_end - group.expert_begin) {
    throw std::invalid_argument("tensor group: some of the experts " + std::to_string(group.expert_begin) +
                                " to " + std::to_string(group.expert_end - 1) + " are not local in layer " +
                                std::to_string(spec.layer));
  }
  return {index, dim, first - local.begin(), last - local.begin()};
}

}  // namespace

std::vector<ParameterSlice> slices(const Model& model, const TensorGroup& group) {
  std::vector<ParameterSlice> out;
  std::int64_t elements = 0;
  for (const TensorClass wanted : group.classes) {
    for (std::size_t i = 0; i < model.parameters().size(); ++i) {
      const Parameter& parameter = model.parameters()[i];
      if (parameter.spec.tensor_class() != wanted) continue;
      if (!in_layers(parameter.spec, group, model.shape().layers)) continue;
      const bool of_experts = wanted == TensorClass::router || wanted == TensorClass::expert;
      out.push_back(of_experts ? expert_slice(model, i, group)
                               : ParameterSlice{i, 0, 0, parameter.master.size(0)});
      elements += out.back().of(parameter.master).numel();
    }
  }
  if (elements != group.elements) {
    throw std::invalid_argument("tensor group: the plan counts " + std::to_string(group.elements) +
                                " elements, but the model has " + std::to_string(elements));
  }
  return out;
}

std::vector<at::Tensor> parameter_views(const Model& model, const TensorGroup& group) {
  std::vector<at::Tensor> out;
  for (const ParameterSlice& slice : slices(model, group)) {
    out.push_back(slice.of(model.parameters()[slice.parameter].master));
  }
  return out;
}

}  // namespace fomoe::trainer
