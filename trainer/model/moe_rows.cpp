#include "trainer/model/moe_rows.hpp"

#include "trainer/kernels/expert_rows/expert_rows.hpp"
#include "trainer/model/grouped_product.hpp"

namespace fomoe::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// For each row p, which belongs to token t and expert e and has the gate g:
//   r = x[t],  h = r·up_e,  a = SiLU(h),  y = a·down_e,  out[t] = Σ g·y
//   D = d out[t],  u = D·down_eᵀ,  d g = a·u,  dh = g·u·SiLU'(h),  dr = dh·up_eᵀ
//   d up_e = Σ rᵀ·dh,  d down_e = Σ (g·a)ᵀ·D
// In the rows of ghosts, all of these are undefined. All steps are therefore in one autograd Function, so
// that no operator between them reads these rows.
//
// Of the tensors [T·k, …], only h [T·k, d_expert] is kept for the backward pass. It gathers r again and does
// not need y [T·k, d]; it reads and writes as many rows of width d as a backward pass that has both. SiLU is
// computed again as well.
struct ExpertsByRows : torch::autograd::Function<ExpertsByRows> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gates,
                            const at::Tensor& up, const at::Tensor& down, const at::Tensor& permutation,
                            const at::Tensor& position, const at::Tensor& ends) {
    const Route route{permutation, position, ends};
    const at::Tensor h = grouped_rows(rows_of_experts(x, route, gates.size(1)), up, ends);
    const at::Tensor y = grouped_rows(silu_of_rows(h, ends), down, ends);
    context->save_for_backward({x, h, gates, up, down, permutation, position, ends});
    return weighted_sum_of_rows(y, gates, route);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &h = saved[1], &gates = saved[2], &up = saved[3], &down = saved[4],
                     &ends = saved[7];
    const Route route{saved[5], saved[6], ends};
    const std::int64_t chosen = gates.size(1);
    at::Tensor d_out = rows_of_experts(gradients[0].contiguous(), route, chosen);
    GatedSiluGradients silu =
        gated_silu_backward(grouped_rows(d_out, down.transpose(1, 2), ends), h, gates, route);
    const at::Tensor d_down = grouped_outer(silu.gated, d_out, ends);
    // Each tensor of rows is freed as soon as it is not needed, so that one of width d exists at a time.
    silu.gated.reset();
    d_out.reset();
    const at::Tensor d_up = grouped_outer(rows_of_experts(x, route, chosen), silu.d_h, ends);
    const at::Tensor d_rows = grouped_rows(silu.d_h, up.transpose(1, 2), ends);
    return {rows_of_experts_backward(d_rows, route, chosen), silu.d_gates, d_up, d_down, {}, {}, {}};
  }
};

}  // namespace

at::Tensor experts_by_rows(const at::Tensor& x, const at::Tensor& gates, const at::Tensor& up,
                           const at::Tensor& down, const Route& route) {
  return ExpertsByRows::apply(x.contiguous(), gates.contiguous(), up, down, route.permutation, route.position,
                              route.ends);
}

}  // namespace fomoe::trainer
