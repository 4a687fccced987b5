// Maps the plan's tensor groups (classes, layers, experts) to the tensors of a model.
//
// The payload of a group is the concatenation of its flattened slices, in the order given here: first by
// class as the group lists them, then by layer, then in the order of parameters.hpp. The order is the same on
// every site that holds the group's experts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "trainer/model/model.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Part of one parameter: [begin, end) along one dimension.
struct ParameterSlice {
  std::size_t parameter = 0;  // index in Model::parameters()
  std::int64_t dim = 0;
  std::int64_t begin = 0, end = 0;

  /// The slice as a view of a tensor that has the shape of the whole parameter: the parameter, its gradient
  /// or one of its moments.
  [[nodiscard]] at::Tensor of(const at::Tensor& whole) const { return whole.narrow(dim, begin, end - begin); }
};

/// The slices of a group. The embedding belongs to no layer: it is included whenever its class is listed. The
/// embedding's norm goes with layer 0, and the final norm with the last layer. Router columns and experts are
/// those of [expert_begin, expert_end). Throws std::invalid_argument if one of these experts is not local, or
/// if the slices do not add up to `group.elements`.
std::vector<ParameterSlice> slices(const Model& model, const costmodel::TensorGroup& group);

/// Views of the group's slices in the master parameters.
std::vector<at::Tensor> parameter_views(const Model& model, const costmodel::TensorGroup& group);

}  // namespace fomoe::trainer
