// Normally distributed values for the initial weights. Every element depends only on the seed and on its
// index, and is computed on the CPU with the basic operations of IEEE 754, which round alike on every
// machine. LibTorch's generators do not have this property: they give other values on a GPU, and on CPUs with
// other vector instructions.
#pragma once
#include <cstdint>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// 64 random bits: splitmix64 (Steele et al. 2014) as a function of the position in the sequence. Similar
/// arguments give unrelated bits, so the result also serves as a seed.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index);

/// The value z with P(Z <= z) = p for a standard normal Z, 0 < p < 1, with a relative error below 1e-6:
/// algorithm PPND7 (Wichura 1988, AS 241).
double normal_quantile(double p);

/// Fills an fp32 or fp64 tensor of any device and layout with values of mean 0. Elements are numbered in the
/// order of the tensor's indices, last index fastest.
void fill_normal(at::Tensor values, double standard_deviation, std::uint64_t seed);

}  // namespace fomoe::trainer
