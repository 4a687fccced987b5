// The calls to CUDA that LibTorch's operators do not hide and that use LibTorch's types; device_info.hpp has
// the calls without these types. cuda_device.cpp implements this header. In a build without CUDA,
// cuda_missing.cpp implements it instead: no device is available, and every function that needs a device
// throws.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/device/device_info.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

int cuda_device_count();
void set_cuda_device(at::Device device);
/// Waits until the calling thread's current stream of the device has done all its work.
void wait_for_device(at::Device device);
/// The compute capability times 10: 90 for 9.0.
int compute_capability(at::Device device);
/// Makes scaled_dot_product_attention of this process try cuDNN's kernels first, then flash attention and the
/// others, if the device has compute capability 9 or 10. On an H200 (bf16, heads of 64 elements, sequences of
/// 2,048 tokens) forward and backward pass take 222 µs with cuDNN and 363 µs with flash attention. LibTorch
/// 2.11 chooses the same order by itself if its version of cuDNN is new enough and no environment variable
/// forbids it; this call does not depend on them. On older devices LibTorch's order stays.
void prefer_cudnn_attention(at::Device device);
/// Where the GPU is in its machine: "domain:bus:device" of PCI.
std::string cuda_slot(at::Device device);
/// "CUDA runtime 13.0, driver 13.0".
std::string cuda_versions();

/// Frees the workspaces of 32 MiB and more that LibTorch keeps for each stream that has multiplied matrices.
/// No recorded step may exist, since a recording writes to the workspace of its stream.
void free_matrix_workspaces();
/// The peak of the memory that LibTorch's allocator has handed out on the current device.
void reset_peak_cuda_memory();
std::int64_t peak_cuda_memory_bytes();

/// A mark on the time line of the current stream.
class CudaEvent {
 public:
  CudaEvent();
  ~CudaEvent();
  void record();
  /// Waits until the device has reached the event.
  void wait();
  /// The device time between the two events. Both must have been recorded, and the device must have reached
  /// `later`.
  [[nodiscard]] double seconds_until(const CudaEvent& later) const;

 private:
  struct Event;
  std::unique_ptr<Event> event_;
};

}  // namespace fomoe::trainer
