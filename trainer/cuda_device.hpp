// The calls to CUDA that LibTorch's operators do not hide; device_info.hpp has those without LibTorch's
// types. cuda_device.cpp makes them. In a build without CUDA cuda_missing.cpp takes its place: no device is
// available there, and everything that needs one throws.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/device_info.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

int cuda_device_count();
void set_cuda_device(at::Device device);
/// The major number: 9 for 9.0.
int compute_capability(at::Device device);
/// Where the GPU is in its machine: "domain:bus:device" of PCI.
std::string cuda_slot(at::Device device);
/// "CUDA runtime 13.0, driver 13.0".
std::string cuda_versions();
at::Generator cuda_generator(at::Device device);

/// Of what LibTorch's allocator has handed out on the current device.
void reset_peak_cuda_memory();
std::int64_t peak_cuda_memory_bytes();

/// A mark on the time line of the current stream.
class CudaEvent {
 public:
  CudaEvent();
  ~CudaEvent();
  void record();
  /// Until the device has passed it.
  void wait();
  /// Both recorded, and the later one passed.
  [[nodiscard]] double seconds_until(const CudaEvent& later) const;

 private:
  struct Event;
  std::unique_ptr<Event> event_;
};

}  // namespace fomoe::trainer
