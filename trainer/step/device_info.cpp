#include "trainer/step/device_info.hpp"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/version.h>

#include <ctime>
#include <fstream>

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

std::string cuda_version(int number) {  // 13000 → "13.0"
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

std::string cpu_name() {
  const std::string name = proc_value("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown CPU" : name;
}

std::string cuda_name() { return at::cuda::getCurrentDeviceProperties()->name; }

std::string versions() {
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  return std::string("libtorch ") + TORCH_VERSION + ", CUDA runtime " + cuda_version(runtime) +
         (driver > 0 ? ", driver " + cuda_version(driver) : ", no driver");
}

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
    c10::cuda::CUDACachingAllocator::emptyCache();
    c10::cuda::CUDACachingAllocator::resetPeakStats(at::cuda::current_device());
  } else {
    std::ofstream("/proc/self/clear_refs") << "5";  // resets VmHWM (proc(5)); containers may forbid it
  }
}

std::int64_t peak_memory_bytes(bool cuda) {
  if (cuda) {
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return c10::cuda::CUDACachingAllocator::getDeviceStats(at::cuda::current_device())
        .allocated_bytes[kAll]
        .peak;
  }
  const std::string kibibytes = proc_value("/proc/self/status", "VmHWM");
  return kibibytes.empty() ? 0 : std::stoll(kibibytes) * 1024;
}

}  // namespace fomoe::trainer
