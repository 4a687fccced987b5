// Matrix products of consecutive groups of rows, with one weight matrix per group.
//
// There are G groups. Group g consists of rows ends[g−1] … ends[g] − 1, with ends[−1] = 0. Rows from the last
// end on belong to no group. In these rows, the content of the result is *undefined* and may be NaN, so the
// caller must clear or ignore it.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Row i of the result is rows[i]·weights[g(i)], where g(i) is the group of row i. rows [n, a], weights [G,
/// a, b], ends int32 [G] → [n, b].
at::Tensor grouped_rows(const at::Tensor& rows, const at::Tensor& weights, const at::Tensor& ends);

/// Group g of the result is leftᵀ·right over the rows of group g; it is zero for an empty group. left [n, a],
/// right [n, b] → [G, a, b].
at::Tensor grouped_outer(const at::Tensor& left, const at::Tensor& right, const at::Tensor& ends);

/// Whether products of matrices of these widths run without waiting for the host, so that they can be
/// recorded (device_graph.hpp). That holds for bf16 on GPUs of compute capability 9.0, and on those of 10.0
/// where LibTorch's kernel is found to be right.
bool grouped_on_device(at::Device device, at::ScalarType type, std::initializer_list<std::int64_t> widths);

}  // namespace fomoe::trainer
