#include "trainer/kernels/softmax_loss/softmax_loss.hpp"

#include <ATen/Dispatch.h>

#include <limits>

#include "trainer/kernels/on_device.hpp"
#include "trainer/kernels/softmax_loss/softmax_loss_kernels.hpp"

namespace fomoe::trainer {
namespace {

void check(const at::Tensor& logits, const at::Tensor& targets, std::int64_t vocabulary) {
  TORCH_CHECK(logits.dim() == 2 && logits.is_contiguous(), "the logits must be a contiguous matrix");
  TORCH_CHECK(vocabulary >= 1 && vocabulary <= logits.size(1), "the logits have ", logits.size(1),
              " columns, fewer than the vocabulary's ", vocabulary);
  TORCH_CHECK(targets.sizes() == logits.sizes().slice(0, 1) && targets.is_contiguous() &&
                  targets.scalar_type() == at::kLong && targets.device() == logits.device(),
              "the targets must be a contiguous int64 for each row of the logits, on their device");
}

}  // namespace

at::Tensor softmax_losses(at::Tensor& logits, const at::Tensor& targets, std::int64_t vocabulary,
                          bool gradients) {
  check(logits, targets, vocabulary);
  const at::Tensor losses =
      at::empty({logits.size(0)}, logits.options().dtype(sum_type(logits.scalar_type())));
  const SoftmaxLoss arguments{logits.mutable_data_ptr(),
                              targets.const_data_ptr<std::int64_t>(),
                              losses.mutable_data_ptr(),
                              logits.size(0),
                              vocabulary,
                              logits.size(1),
                              gradients};
  if (logits.is_cuda()) {
    launch_on(logits.device(),
              [&](auto stream) { return launch_softmax_loss(row_type(logits), arguments, stream); });
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, logits.scalar_type(), "softmax_losses", [&] {
      for (std::int64_t row = 0; row < arguments.rows; ++row)
        softmax_loss_row<scalar_t, 1>(Alone{}, arguments, row);
    });
  }
  return losses;
}

// The formula log Σ exp(l) = l_max − log p_max uses p_max, the largest probability of a token, because p_max
// is at least 1/V and its logarithm therefore finite. The logarithm of p_target can be infinite.
at::Tensor softmax_losses_of_operators(at::Tensor& logits, const at::Tensor& targets, std::int64_t vocabulary,
                                       bool gradients) {
  check(logits, targets, vocabulary);
  const at::ScalarType accumulate = sum_type(logits.scalar_type());
  const std::int64_t padding = logits.size(1) - vocabulary;
  // The probability of the padding is 0, and so is its gradient.
  if (padding > 0) logits.narrow(1, vocabulary, padding).fill_(-std::numeric_limits<double>::infinity());
  const at::Tensor target_logit = logits.gather(1, targets.unsqueeze(1)).to(accumulate);
  const auto [largest, where] = logits.max(/*dim=*/1, /*keepdim=*/true);
  // In place: both of LibTorch's kernels read an element of a row before they write it. A test compares the
  // result with log_softmax.
  at::_softmax_out(logits, logits, /*dim=*/1, /*half_to_float=*/false);
  const at::Tensor log_sum = largest.to(accumulate) - logits.gather(1, where).to(accumulate).log();
  if (gradients)
    logits.scatter_add_(1, targets.unsqueeze(1), at::full({logits.size(0), 1}, -1, logits.options()));
  return (log_sum - target_logit).squeeze(1);
}

}  // namespace fomoe::trainer
