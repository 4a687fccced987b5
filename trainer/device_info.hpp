// What the machine says about itself: names and versions for the profile, and peak memory. No LibTorch in
// this header.
#pragma once
#include <cstdint>
#include <string>

namespace fomoe::trainer {

/// Whether a CUDA device can be used; and if not, why, as "there is no …".
bool cuda_available();
std::string why_no_cuda();

std::string cpu_name();   // "model name" of /proc/cpuinfo
std::string cuda_name();  // of the current CUDA device; in cuda_device.cpp
/// "libtorch 2.11.0, CUDA runtime 13.0, driver 13.0"; "no driver" where there is none, "without CUDA" where
/// fomoe-train was built so.
std::string versions();
std::string utc_now();  // "2025-01-31T12:00:00Z"

/// Lets the peak start again from what is in use now, where the system permits it.
void reset_peak_memory(bool cuda);
std::int64_t peak_memory_bytes(bool cuda);

}  // namespace fomoe::trainer
