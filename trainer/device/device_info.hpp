// Names and versions of this machine's hardware and libraries, for the profile, and its peak memory. This
// header does not include LibTorch.
#pragma once
#include <cstdint>
#include <string>

namespace fomoe::trainer {

/// Whether a CUDA device can be used.
bool cuda_available();
/// The reason why there is no usable CUDA device, as a clause of the form "there is no …".
std::string why_no_cuda();

std::string cpu_name();   // "model name" of /proc/cpuinfo
std::string cuda_name();  // name of CUDA device 0
/// Such as "libtorch 2.11.0, CUDA runtime 13.0, driver 13.0", or "no driver" if there is none.
std::string versions();
std::string utc_now();  // such as "2025-01-31T12:00:00Z"

/// Resets the peak to the memory in use now, if the system permits it.
void reset_peak_memory(bool cuda);
std::int64_t peak_memory_bytes(bool cuda);

/// Whether LibTorch uses only algorithms that give the same bits each time, in this process from now on. An
/// operator that has none throws. On a GPU, call it before the first matrix product: cuBLAS then needs
/// workspaces of its own.
void use_deterministic_algorithms(bool wanted);

}  // namespace fomoe::trainer
