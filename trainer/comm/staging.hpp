// The way of bytes between a GPU and the host: always one copy from or to page-locked memory, which a GPU
// reaches at the full rate of its connection. On an H200, such copies reach 55 GB/s in each direction;
// copies from and to other memory go through a buffer of the driver and reach 7.5 to 12 GB/s. LibTorch keeps
// page-locked memory that is freed for the next copy.
#pragma once
#include <cstdint>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Memory of the host for bytes that will be used on `device`: page-locked if that is a GPU.
at::Tensor host_buffer(std::int64_t bytes, at::Device device);

/// The bytes in host memory. Those of a GPU are copied there when the GPU has computed them, and the function
/// waits for that; others are returned as they are.
at::Tensor on_host(const at::Tensor& bytes);

/// The bytes on `device`. A copy from page-locked memory to a GPU is only queued on the current stream.
at::Tensor on_device(const at::Tensor& bytes, at::Device device);

}  // namespace fomoe::trainer
