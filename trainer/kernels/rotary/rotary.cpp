#include "trainer/kernels/rotary/rotary.hpp"

#include <ATen/Dispatch.h>

#include "trainer/kernels/on_device.hpp"
#include "trainer/kernels/rotary/rotary_kernels.hpp"

namespace fomoe::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// projection [B, S, 3, H, h]. Runs the forward pass if q, k and v are undefined, otherwise the backward
/// pass.
void run(const at::Tensor& projection, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
         const at::Tensor& cos, const at::Tensor& sin) {
  const bool backward = v.defined();
  const Rotary arguments{projection.data_ptr(),
                         backward ? q.data_ptr() : nullptr,
                         backward ? k.data_ptr() : nullptr,
                         backward ? v.data_ptr() : nullptr,
                         cos.const_data_ptr(),
                         sin.const_data_ptr(),
                         projection.size(0) * projection.size(1),
                         projection.size(1),
                         projection.size(3),
                         projection.size(4) / 2};
  if (projection.is_cuda()) {
    return launch_on(projection.device(), [&](auto stream) {
      const RowType type = row_type(projection);
      return backward ? launch_rotary_backward(type, arguments, stream)
                      : launch_rotary(type, arguments, stream);
    });
  }
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, projection.scalar_type(), "rotated_heads", [&] {
    for (std::int64_t token = 0; token < arguments.tokens; ++token) {
      if (backward) {
        rotary_token_backward<scalar_t, 1>(Alone{}, arguments, token);
      } else {
        rotary_token<scalar_t, 1>(Alone{}, arguments, token);
      }
    }
  });
}

struct RotatedHeads : torch::autograd::Function<RotatedHeads> {
  static variable_list forward(AutogradContext* context, const at::Tensor& projection, const at::Tensor& cos,
                               const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    run(projection, {}, {}, {}, cos, sin);
    return {projection.select(2, 0), projection.select(2, 1), projection.select(2, 2)};
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor d_q = gradients[0].contiguous(), d_k = gradients[1].contiguous(),
                     d_v = gradients[2].contiguous();
    const at::IntArrayRef sizes = d_q.sizes();
    const at::Tensor d_projection = at::empty({sizes[0], sizes[1], 3, sizes[2], sizes[3]}, d_q.options());
    run(d_projection, d_q, d_k, d_v, saved[0], saved[1]);
    return {d_projection, {}, {}};
  }
};

}  // namespace

Heads rotated_heads(const at::Tensor& projection, const RotaryTable& table) {
  TORCH_CHECK(projection.dim() == 5 && projection.size(2) == 3 && projection.size(4) % 2 == 0 &&
                  projection.is_contiguous(),
              "rotated_heads: the projection must be a contiguous tensor [B, S, 3, H, h] with even h, not ",
              projection.sizes());
  for (const at::Tensor& angles : {table.cos, table.sin}) {
    TORCH_CHECK(
        angles.numel() == projection.size(1) * (projection.size(4) / 2) && angles.is_contiguous() &&
            angles.scalar_type() == projection.scalar_type() && angles.device() == projection.device(),
        "rotated_heads: the angles must be contiguous and have the projection's positions, dtype and device");
  }
  const variable_list out = RotatedHeads::apply(projection, table.cos, table.sin);
  return {out[0], out[1], out[2]};
}

Heads rotated_heads_of_operators(const at::Tensor& projection, const RotaryTable& table) {
  return {rope(projection.select(2, 0), table), rope(projection.select(2, 1), table),
          projection.select(2, 2)};
}

}  // namespace fomoe::trainer
