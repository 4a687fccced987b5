// From the plan's words (classes, layers, experts) to the tensors of a model.
//
// A payload of a group is the concatenation of its slices, flattened, in the order given here: by class as
// the group lists them, then layer, then the order of parameters.hpp. It is the same on every site that holds
// the group's experts.
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

  /// View of a tensor shaped like the whole parameter: the parameter, its gradient or a moment of it.
  [[nodiscard]] at::Tensor of(const at::Tensor& whole) const { return whole.narrow(dim, begin, end - begin); }
};

/// The embedding belongs to no layer: it is included wherever its class is listed. The embedding's norm goes
/// with layer 0, the final norm with the last layer. Router columns and experts are those of [expert_begin,
/// expert_end). Throws std::invalid_argument where one of these is not local, and where the slices do not add
/// up to `group.elements`.
std::vector<ParameterSlice> slices(const Model& model, const costmodel::TensorGroup& group);

/// Views of the master parameters of the group.
std::vector<at::Tensor> parameter_views(const Model& model, const costmodel::TensorGroup& group);

}  // namespace fomoe::trainer
