#include "experiments/step_profiles/depth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "experiments/model_files/architecture.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::step_profiles {
namespace {

using costmodel::ModelShape;

/// The members that count layers of a kind, apart from those with experts. A model without linear or
/// compressed attention has no such layers.
std::vector<std::int64_t*> layer_counts(ModelShape& shape) {
  std::vector<std::int64_t*> counts = {&shape.window_layers, &shape.layers_without_attention,
                                       &shape.layers_without_ffn};
  if (shape.linear) counts.push_back(&shape.linear->layers);
  if (shape.compressed) {
    counts.push_back(&shape.compressed->sparse_layers);
    counts.push_back(&shape.compressed->heavy_layers);
  }
  return counts;
}

std::vector<bool> layers_with_experts(const ModelShape& shape) {
  std::vector<bool> with(static_cast<std::size_t>(shape.layers));
  for (std::int64_t i = 0; i < shape.layers; ++i)
    with[static_cast<std::size_t>(i)] = costmodel::moe_layer_of_layer(shape, i).has_value();
  return with;
}

}  // namespace

bool one_model(const ModelShape& shallow, const ModelShape& deep) {
  ModelShape same = shallow, other = deep;
  if (same.linear.has_value() != other.linear.has_value() ||
      same.compressed.has_value() != other.compressed.has_value())
    return false;
  const std::vector<std::int64_t*> few = layer_counts(same), many = layer_counts(other);
  const std::int64_t more = deep.layers - shallow.layers;
  for (std::size_t i = 0; i < few.size(); ++i) {
    // Of the layers that the deeper model has in addition, some or all are of this kind.
    if (more > 0 && (*many[i] < *few[i] || *many[i] - *few[i] > more)) return false;
    *few[i] = *many[i];
  }
  const std::vector<bool> first = layers_with_experts(shallow), all = layers_with_experts(deep);
  for (std::size_t i = 0; i < std::min(first.size(), all.size()); ++i)
    if (first[i] != all[i]) return false;
  same.name = other.name;
  same.layers = other.layers;
  same.dense_layers = other.dense_layers;
  same.moe_layer_list = other.moe_layer_list;
  same.other_parameters = other.other_parameters;
  return same == other;
}

ModelShape at_depth(const ModelShape& shallow, const ModelShape& deep, std::int64_t layers) {
  ModelShape few = shallow, whole = deep;
  const std::int64_t more = deep.layers - shallow.layers;
  std::vector<std::int64_t*> from = layer_counts(few), counts = layer_counts(whole);
  from.push_back(&few.other_parameters);
  counts.push_back(&whole.other_parameters);
  const auto all_whole = [&](std::int64_t depth) {
    for (std::size_t i = 0; i < counts.size(); ++i)
      if ((*counts[i] - *from[i]) * (depth - shallow.layers) % more != 0) return false;
    return true;
  };
  if (!all_whole(layers)) {
    std::int64_t next = layers;
    while (!all_whole(next)) ++next;  // at the latest a multiple of the layers that `deep` has in addition
    throw InputError(
        "--layers", std::to_string(layers),
        fmt::format("a number at which the kinds of layers stand in the same relation as among the "
                    "{} layers by which the profiles differ",
                    more),
        fmt::format("--layers {}", next));
  }
  for (std::size_t i = 0; i < counts.size(); ++i)
    *counts[i] = *from[i] + (*counts[i] - *from[i]) * (layers - shallow.layers) / more;
  std::vector<bool> experts = layers_with_experts(deep);
  for (std::int64_t i = deep.layers; i < layers; ++i)
    experts.push_back(experts[static_cast<std::size_t>(i - more)]);
  whole.layers = layers;
  scenario::set_moe_layers(whole, experts);
  return whole;
}

}  // namespace fomoe::step_profiles
