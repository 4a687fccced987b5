// Whose kernels a model computes with.
#pragma once

namespace fomoe::trainer {

/// own: those of trainer/kernels, which on a CPU are plain loops on one core, for tests. library: LibTorch's
/// operators, one after the other. by_device: own on CUDA in fp32 and bf16, LibTorch's otherwise.
enum class Kernels { by_device, own, library };

}  // namespace fomoe::trainer
