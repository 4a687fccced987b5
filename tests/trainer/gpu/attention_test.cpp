// Tests which kernels attention runs with on a GPU, and that they compute what LibTorch's plain operators do
// with the layout of our q, k and v: views of [B, S, H, D] as [B, H, S, D].
#include <ATen/ops/_fused_sdp_choice.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/trainer/support.hpp"
#include "trainer/device/cuda_device.hpp"
#include "trainer/kernels/rotary/rotary.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

constexpr std::int64_t kAttendedSequences = 2, kAttendedLength = 256, kAttentionHeads = 4, kHeadWidth = 64;
const at::Device kAttentionGpu(at::kCUDA, 0);

/// LibTorch's order, with flash attention first. The first choice of a process may set the order as well, so
/// it is made before.
void prefer_flash_attention(const std::vector<at::Tensor>& heads) {
  at::_fused_sdp_choice(heads[0], heads[1], heads[2]);
  std::vector<std::int64_t> order;
  for (const at::SDPBackend back_end :
       {at::SDPBackend::flash_attention, at::SDPBackend::efficient_attention, at::SDPBackend::math,
        at::SDPBackend::cudnn_attention, at::SDPBackend::overrideable})
    order.push_back(static_cast<std::int64_t>(back_end));
  at::globalContext().setSDPPriorityOrder(order);
}

std::int64_t chosen(const std::vector<at::Tensor>& heads) {
  return at::_fused_sdp_choice(heads[0], heads[1], heads[2], /*attn_mask=*/{}, /*dropout_p=*/0,
                               /*is_causal=*/true, /*scale=*/1.0 / kHeadWidth);
}

/// q, k and v as Model::attention makes them: rotated, and with the heads as dimension 1.
std::vector<at::Tensor> heads_of(const at::Tensor& projection) {
  const Heads part =
      rotated_heads(projection, rotary_table(kAttendedLength, kHeadWidth, projection.options()));
  return {part.q.transpose(1, 2), part.k.transpose(1, 2), part.v.transpose(1, 2)};
}

struct Attended {
  at::Tensor out, d_projection;
};

Attended attended(const at::Tensor& projection, const at::Tensor& d_out) {
  const at::Tensor leaf = projection.detach().clone().requires_grad_();
  const std::vector<at::Tensor> heads = heads_of(leaf);
  const at::Tensor out = at::scaled_dot_product_attention(heads[0], heads[1], heads[2], /*attn_mask=*/{},
                                                          /*dropout_p=*/0, /*is_causal=*/true,
                                                          /*scale=*/1.0 / kHeadWidth)
                             .transpose(1, 2);
  return {out.detach(), torch::autograd::grad({out}, {leaf}, {d_out.to(out.scalar_type())})[0]};
}

}  // namespace

TEST_CASE("a model on a GPU makes attention choose cuDNN for our layout of q, k and v") {
  const int capability = compute_capability(kAttentionGpu);
  if (capability / 10 != 9 && capability / 10 != 10) return;  // LibTorch's order stays there
  const at::Tensor projection =
      at::randn({kAttendedSequences, kAttendedLength, 3, kAttentionHeads, kHeadWidth},
                at::device(kAttentionGpu).dtype(at::kBFloat16))
          .requires_grad_();
  const std::vector<at::Tensor> heads = heads_of(projection);
  prefer_flash_attention(heads);
  CHECK(chosen(heads) == static_cast<std::int64_t>(at::SDPBackend::flash_attention));
  ModelOptions options;
  options.device = kAttentionGpu;
  options.dtype = at::kBFloat16;
  const Model model(tiny_shape(), options);
  CHECK(chosen(heads) == static_cast<std::int64_t>(at::SDPBackend::cudnn_attention));
}

// The fused kernels round probabilities and gradients of scores to bf16, each by up to 2⁻⁹ of its value, and
// the rotation rounds q and k likewise. The errors are independent, so that a sum of such values has about
// the same error in relation to its size. 2⁻⁶ allows eight of them in a row.
TEST_CASE("attention in bf16 with our layout is that of operators in fp64, forward and backward") {
  at::manual_seed(11);
  const at::TensorOptions bf16 = at::device(kAttentionGpu).dtype(at::kBFloat16);
  const at::Tensor projection =
                       at::randn({kAttendedSequences, kAttendedLength, 3, kAttentionHeads, kHeadWidth}, bf16),
                   d_out =
                       at::randn({kAttendedSequences, kAttendedLength, kAttentionHeads, kHeadWidth}, bf16);
  prefer_cudnn_attention(kAttentionGpu);
  const Attended got = attended(projection, d_out);
  // On the CPU, since our kernels take no fp64 on a GPU.
  const Attended exact = attended(projection.cpu().to(at::kDouble), d_out.cpu());
  const auto relative_error = [](const at::Tensor& value, const at::Tensor& reference) {
    return ((value.cpu().to(at::kDouble) - reference).norm() / reference.norm()).item<double>();
  };
  CHECK(relative_error(got.out, exact.out) < 0x1p-6);
  for (const std::int64_t part : {0, 1, 2}) {  // the gradients of q, k and v
    CAPTURE(part);
    CHECK(relative_error(got.d_projection.select(2, part), exact.d_projection.select(2, part)) < 0x1p-6);
  }
}
