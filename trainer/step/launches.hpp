// How the kernels of a training step are launched on a GPU. This header does not include LibTorch.
#pragma once

namespace fomoe::trainer {

/// by_host: the host launches one kernel after the other. by_graph: kernels are recorded once and then
/// launched together, as CUDA graphs (device_graph.hpp).
enum class Launches { by_host, by_graph };

}  // namespace fomoe::trainer
