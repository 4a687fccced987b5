#include "trainer/device/device_info.hpp"

#include <torch/version.h>

#include <ctime>
#include <fstream>

#include "trainer/device/cuda_device.hpp"

namespace fomoe::trainer {
namespace {

// Value of the first line "key<blank or tab>: value".
std::string proc_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.rfind(key, 0) == 0 && colon != std::string::npos) {
      const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  }
  return "";
}

}  // namespace

std::string cpu_name() {
  const std::string name = proc_value("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown CPU" : name;
}

std::string versions() { return std::string("libtorch ") + TORCH_VERSION + ", " + cuda_versions(); }

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

void reset_peak_memory(bool cuda) {
  if (cuda) {
    reset_peak_cuda_memory();
  } else {
    std::ofstream("/proc/self/clear_refs") << "5";  // resets VmHWM (proc(5)); containers may forbid it
  }
}

std::int64_t peak_memory_bytes(bool cuda) {
  if (cuda) return peak_cuda_memory_bytes();
  const std::string kibibytes = proc_value("/proc/self/status", "VmHWM");
  return kibibytes.empty() ? 0 : std::stoll(kibibytes) * 1024;
}

void use_deterministic_algorithms(bool wanted) {
  // cuBLAS documents this setting for results that do not depend on the streams in use (cuBLAS manual,
  // "Results reproducibility"); LibTorch refuses deterministic products without it.
  if (wanted) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::globalContext().setDeterministicAlgorithms(wanted, /*warn_only=*/false);
  // LibTorch would also fill new tensors, which every step overwrites anyway.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

}  // namespace fomoe::trainer
