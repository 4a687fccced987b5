// What the machine says about itself: names and versions for the profile, and peak memory. No LibTorch in
// this header.
#pragma once
#include <cstdint>
#include <string>

namespace fomoe::trainer {

std::string cpu_name();   // "model name" of /proc/cpuinfo
std::string cuda_name();  // of CUDA device 0
/// "libtorch 2.11.0, CUDA runtime 13.0, driver 13.0"; "no driver" where there is none.
std::string versions();
std::string utc_now();  // "2025-01-31T12:00:00Z"

/// Lets the peak start again from what is in use now, where the system permits it.
void reset_peak_memory(bool cuda);
std::int64_t peak_memory_bytes(bool cuda);

}  // namespace fomoe::trainer
