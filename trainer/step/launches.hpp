// How a GPU gets the kernels of a step. No LibTorch in this header.
#pragma once

namespace fomoe::trainer {

/// One after the other from the host, or recorded once and then all at once, as CUDA graphs
/// (device_graph.hpp).
enum class Launches { by_host, by_graph };

}  // namespace fomoe::trainer
