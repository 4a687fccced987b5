// Which kernels a model computes with: those of trainer/kernels or LibTorch's operators.
#pragma once

namespace fomoe::trainer {

/// own: the kernels of trainer/kernels; on a CPU they are plain loops on one core, for tests. library:
/// LibTorch's operators, one after the other. by_device: `own` on CUDA in fp32 and bf16, otherwise `library`.
enum class Kernels { by_device, own, library };

}  // namespace fomoe::trainer
