// Granularity of collectives: one call sends everything, one bucket or one tensor.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// Elements of each tensor of a group, layer by layer; their sum is the group's elements. Attention counts as
/// four projections, an expert as its matrices. All other elements of an architecture count as one more
/// tensor.
std::vector<std::int64_t> tensor_elements(const ModelShape& shape, const TensorGroup& group);

/// Elements that each call of a collective takes from a payload, in the order of the calls. An empty function
/// means a single call.
using Pieces = std::function<std::vector<std::int64_t>(const Payload&)>;
/// Applies strategy.granularity and strategy.bucket_bytes: tensors one by one or everything at once, cut into
/// buckets of at most bucket_bytes. A payload that does not consist of whole tensor groups counts as one
/// tensor.
Pieces pieces_of(const Scenario& scenario, const Plan& plan);

}  // namespace fomoe::costmodel
