// Rotary position embedding (RoFormer, arXiv:2104.09864): in a head of h dimensions at position p, the pair
// (x_i, x_{i+h/2}) is rotated by the angle p·theta^(−2i/h), so that q·k depends on positions only through
// their difference.
#pragma once
#include <cstdint>

#include "trainer/rope/rope_theta.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Cosines and sines of the angles for S positions and heads of h dimensions, [S, 1, h/2] each.
struct RotaryTable {
  at::Tensor cos, sin;
};

/// The table that all layers of a forward pass share, on the device and in the dtype of `options`.
RotaryTable rotary_table(std::int64_t positions, std::int64_t head, const at::TensorOptions& options,
                         double theta = kRopeTheta);

/// Rotates x [B, S, H, h] (B sequences, S positions, H heads), which may have any strides but a dense last
/// dimension. The result has the same shape and is contiguous. The position is the index in the second
/// dimension.
at::Tensor rope(const at::Tensor& x, const RotaryTable& table);

}  // namespace fomoe::trainer
