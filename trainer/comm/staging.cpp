#include "trainer/comm/staging.hpp"

namespace fomoe::trainer {

at::Tensor host_buffer(std::int64_t bytes, at::Device device) {
  return at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(device.is_cuda()));
}

at::Tensor on_host(const at::Tensor& bytes) {
  if (bytes.is_cpu()) return bytes;
  at::Tensor host = host_buffer(bytes.numel(), bytes.device());
  // A copy that blocks: into page-locked memory too, LibTorch queues it and then waits for its stream alone.
  return host.copy_(bytes);
}

// The allocator of page-locked memory knows which streams still read a block, and hands it out again only
// when they have done so.
at::Tensor on_device(const at::Tensor& bytes, at::Device device) {
  if (device.is_cpu()) return on_host(bytes);
  return bytes.device() == device ? bytes : bytes.to(device, bytes.scalar_type(), /*non_blocking=*/true);
}

}  // namespace fomoe::trainer
