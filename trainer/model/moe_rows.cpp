#include "trainer/model/moe_rows.hpp"

#include "trainer/kernels/expert_rows/expert_rows.hpp"
#include "trainer/model/grouped_product.hpp"

namespace fomoe::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// For each row p, which belongs to token t and expert e:
//   r = x[t],  h = r·up_e,  a = SiLU(h),  y = a·down_e,  out[t] = Σ gate·y
//   dy = gate·d out[t],  d gate = y·d out[t],  da = dy·down_eᵀ,  dh = da·SiLU'(h),  dr = dh·up_eᵀ
//   d up_e = Σ rᵀ·dh,  d down_e = Σ aᵀ·dy
// In the rows of ghosts, r, h, a, y and their gradients are undefined. All steps are therefore in one
// autograd Function, so that no operator between them reads these rows.
struct ExpertsByRows : torch::autograd::Function<ExpertsByRows> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gates,
                            const at::Tensor& up, const at::Tensor& down, const at::Tensor& permutation,
                            const at::Tensor& position, const at::Tensor& ends) {
    const Route route{permutation, position, ends};
    const at::Tensor rows = rows_of_experts(x, route, gates.size(1));
    const at::Tensor h = grouped_rows(rows, up, ends);
    const at::Tensor y = grouped_rows(silu_of_rows(h, ends), down, ends);
    context->save_for_backward({rows, h, y, gates, up, down, permutation, position, ends});
    return weighted_sum_of_rows(y, gates, route);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &h = saved[1], &y = saved[2], &gates = saved[3], &up = saved[4],
                     &down = saved[5], &ends = saved[8];
    const Route route{saved[6], saved[7], ends};
    const WeightedSumGradients sum =
        weighted_sum_of_rows_backward(gradients[0].contiguous(), y, gates, route);
    const at::Tensor d_a = grouped_rows(sum.d_y, down.transpose(1, 2), ends);
    const at::Tensor d_h = silu_of_rows_backward(d_a, h, ends);
    const at::Tensor d_rows = grouped_rows(d_h, up.transpose(1, 2), ends);
    const at::Tensor d_up = grouped_outer(rows, d_h, ends);
    // SiLU is computed again instead of being saved: that costs one pass over [T·k, d_expert], and saves
    // keeping it from the forward to the backward pass.
    const at::Tensor d_down = grouped_outer(silu_of_rows(h, ends), sum.d_y, ends);
    return {rows_of_experts_backward(d_rows, route, gates.size(1)), sum.d_gates, d_up, d_down, {}, {}, {}};
  }
};

}  // namespace

at::Tensor experts_by_rows(const at::Tensor& x, const at::Tensor& gates, const at::Tensor& up,
                           const at::Tensor& down, const Route& route) {
  return ExpertsByRows::apply(x.contiguous(), gates.contiguous(), up, down, route.permutation, route.position,
                              route.ends);
}

}  // namespace fomoe::trainer
