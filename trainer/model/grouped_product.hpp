// Matrix products of consecutive row groups, one weight matrix per group.
//
// Group g is rows ends[g−1] … ends[g] (ends[−1] = 0). Rows from the last end on belong to no group; what the
// result holds there is *undefined*, NaN included, and the caller must clear or ignore it.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Row i of the result is rows[i]·weights[g(i)]. rows [n, a], weights [G, a, b], ends int32 [G] → [n, b].
at::Tensor grouped_rows(const at::Tensor& rows, const at::Tensor& weights, const at::Tensor& ends);

/// Group g of the result is leftᵀ·right over g's rows; zero for an empty group. left [n, a], right [n, b] →
/// [G, a, b].
at::Tensor grouped_outer(const at::Tensor& left, const at::Tensor& right, const at::Tensor& ends);

/// Whether products of matrices of these widths wait for nothing but the device, so that they can be recorded
/// (device_graph.hpp): those of bf16 do, on GPUs whose tensor cores LibTorch's grouped kernel is for.
bool grouped_on_device(at::Device device, at::ScalarType type, std::initializer_list<std::int64_t> widths);

}  // namespace fomoe::trainer
