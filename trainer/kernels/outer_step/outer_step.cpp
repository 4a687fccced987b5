#include "trainer/kernels/outer_step/outer_step.hpp"

#include <ATen/Dispatch.h>

#include <algorithm>

#include "trainer/kernels/on_device.hpp"
#include "trainer/kernels/outer_step/outer_step_kernels.hpp"

namespace fomoe::trainer {

bool fits_nesterov_kernel(const at::Tensor& anchor, const at::Tensor& momentum,
                          const at::Tensor& difference) {
  const auto fits = [&](const at::Tensor& tensor) {
    return tensor.is_cuda() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous() &&
           tensor.device() == anchor.device() && tensor.sizes() == anchor.sizes();
  };
  return fits(anchor) && fits(momentum) && fits(difference);
}

void nesterov_step(at::Tensor anchor, at::Tensor momentum, const at::Tensor& difference, double rate,
                   double decay) {
  for (const at::Tensor& tensor : {momentum, difference}) {
    TORCH_CHECK(tensor.sizes() == anchor.sizes() && tensor.scalar_type() == anchor.scalar_type() &&
                    tensor.device() == anchor.device() && tensor.is_contiguous() && anchor.is_contiguous(),
                "nesterov_step: all tensors must be contiguous and have the same size, dtype and device");
  }
  const std::int64_t n = anchor.numel();
  if (n == 0) return;
  if (anchor.is_cuda()) {
    TORCH_CHECK(anchor.scalar_type() == at::kFloat, "nesterov_step supports only fp32 on CUDA");
    const NesterovStep<float> step{anchor.mutable_data_ptr<float>(),   momentum.mutable_data_ptr<float>(),
                                   difference.const_data_ptr<float>(), n,
                                   static_cast<float>(rate),           static_cast<float>(decay)};
    return launch_on(anchor.device(), [&](auto stream) { return launch_nesterov(step, stream); });
  }
  AT_DISPATCH_FLOATING_TYPES(anchor.scalar_type(), "nesterov_step", [&] {
    const NesterovStep<scalar_t> step{
        anchor.mutable_data_ptr<scalar_t>(),   momentum.mutable_data_ptr<scalar_t>(),
        difference.const_data_ptr<scalar_t>(), n,
        static_cast<scalar_t>(rate),           static_cast<scalar_t>(decay)};
    for (std::int64_t i = 0; i < n; ++i) nesterov_elements<1>(step, i);
  });
}

}  // namespace fomoe::trainer
