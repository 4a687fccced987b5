#include "trainer/kernels/adam/adam.hpp"

#include <ATen/Dispatch.h>
#include <ATen/record_function.h>

#include "trainer/kernels/adam/adam_kernels.hpp"
#include "trainer/kernels/on_device.hpp"

namespace fomoe::trainer {

void adam_step(const AdamTensors& tensors, const AdamRates& rates) {
  if (tensors.masters.empty()) return;
  // For profilers, and for the test that two updates do the same work on the device.
  RECORD_FUNCTION(
      "fomoe::adam_step",
      std::vector<c10::IValue>({rates.rate, rates.rate_scale, rates.beta1, rates.beta2, rates.epsilon,
                                rates.weight_decay, tensors.masters, tensors.gradients}));
  const AdamSettings settings{rates.rate.const_data_ptr<double>(),
                              rates.rate_scale,
                              rates.beta1,
                              rates.beta2,
                              rates.epsilon,
                              rates.weight_decay};
  const at::Tensor like = tensors.gradients.front();
  std::vector<AdamPiece> pieces;
  for (std::size_t i = 0; i < tensors.masters.size(); ++i) {
    const at::Tensor &master = tensors.masters[i], &gradient = tensors.gradients[i],
                     &copy = tensors.copies[i];
    const auto fits = [&](const at::Tensor& other, at::ScalarType type) {
      return other.scalar_type() == type && other.strides() == master.strides() &&
             other.sizes() == master.sizes() && other.device() == like.device();
    };
    TORCH_CHECK(
        master.is_non_overlapping_and_dense() && master.scalar_type() == sum_type(like.scalar_type()) &&
            fits(tensors.moment1[i], master.scalar_type()) &&
            fits(tensors.moment2[i], master.scalar_type()) && fits(gradient, like.scalar_type()) &&
            (!copy.defined() || fits(copy, like.scalar_type())) && master.device() == like.device() &&
            tensors.updates[i].device() == like.device() && rates.rate.device() == like.device(),
        "adam_step: all tensors must have the same layout and device, and all gradients and copies must "
        "have the same dtype");
    pieces.push_back({master.data_ptr(), tensors.moment1[i].data_ptr(), tensors.moment2[i].data_ptr(),
                      gradient.const_data_ptr(), copy.defined() ? copy.data_ptr() : nullptr,
                      tensors.updates[i].const_data_ptr<float>(), master.numel()});
  }
  if (like.is_cuda()) {
    return launch_on(like.device(), [&](auto stream) {
      return launch_adam(row_type(like), settings, pieces.data(), static_cast<std::int64_t>(pieces.size()),
                         stream);
    });
  }
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, like.scalar_type(), "adam_step", [&] {
    for (const AdamPiece& piece : pieces) {
      const auto factors = adam_factors<Sum<scalar_t>>(settings, piece);
      for (std::int64_t i = 0; i < piece.n; ++i) adam_elements<scalar_t, 1>(settings, piece, factors, i);
    }
  });
}

}  // namespace fomoe::trainer
