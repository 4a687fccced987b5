// What one call of a collective sends: everything at once, buckets, or one tensor after another.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// Elements of each tensor of a group, layer by layer. Attention is four projections, an expert its matrices;
/// what an architecture has beside these counts as one more tensor. They add up to the group's elements.
std::vector<std::int64_t> tensor_elements(const ModelShape& shape, const TensorGroup& group);

/// Elements of each call's piece of a payload, in the order of the calls. No function: one call.
using Pieces = std::function<std::vector<std::int64_t>(const Payload&)>;
/// As strategy.granularity and strategy.bucket_bytes say: of tensors, each alone; tensors or everything cut
/// into buckets of at most so many bytes. Payloads that are no whole tensor groups are one tensor.
Pieces pieces_of(const Scenario& scenario, const Plan& plan);

}  // namespace fomoe::costmodel
