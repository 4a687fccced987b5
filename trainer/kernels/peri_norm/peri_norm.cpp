#include "trainer/kernels/peri_norm/peri_norm.hpp"

#include <ATen/Dispatch.h>

#include <algorithm>
#include <vector>

#include "trainer/kernels/on_device.hpp"
#include "trainer/kernels/peri_norm/peri_norm_kernels.hpp"

namespace fomoe::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void run(const PeriNorm& arguments, const at::Tensor& like) {
  if (like.is_cuda()) {
    return launch_on(like.device(),
                     [&](auto stream) { return launch_peri_norm(row_type(like), arguments, stream); });
  }
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, like.scalar_type(), "peri_norm", [&] {
    std::vector<Sum<scalar_t>> kept(static_cast<std::size_t>(kPeriNormScratch * arguments.d));
    for (std::int64_t row = 0; row < arguments.rows; ++row)
      peri_norm_row<scalar_t, 1>(Alone{}, arguments, row, kept.data());
  });
}

void run(const PeriNormBackward& arguments, const at::Tensor& like) {
  if (like.is_cuda()) {
    return launch_on(like.device(), [&](auto stream) {
      return launch_peri_norm_backward(row_type(like), arguments, stream);
    });
  }
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, like.scalar_type(), "peri_norm_backward", [&] {
    std::vector<Sum<scalar_t>> scratch(static_cast<std::size_t>(kPeriNormBackwardScratch * arguments.d));
    for (std::int64_t team = 0; team < arguments.teams; ++team)
      peri_norm_backward_rows<scalar_t, 1>(Alone{}, arguments, team, scratch.data());
  });
}

struct PeriNormFunction : torch::autograd::Function<PeriNormFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& y,
                               const at::Tensor& out_scale, const at::Tensor& in_scale, double branch,
                               double epsilon) {
    const std::int64_t rows = x.size(0), d = x.size(1);
    const at::Tensor sum = at::empty_like(x), normed = at::empty_like(x);
    const at::Tensor stats = at::empty({rows, 4}, x.options().dtype(sum_type(x.scalar_type())));
    run(PeriNorm{x.const_data_ptr(), y.const_data_ptr(), out_scale.const_data_ptr(),
                 in_scale.const_data_ptr(), sum.mutable_data_ptr(), normed.mutable_data_ptr(),
                 stats.mutable_data_ptr(), rows, d, branch, epsilon},
        x);
    context->save_for_backward({sum, y, out_scale, in_scale, stats});
    context->saved_data["branch"] = branch;
    return {sum, normed};
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &sum = saved[0], &y = saved[1], &out_scale = saved[2], &in_scale = saved[3],
                     &stats = saved[4];
    const at::Tensor d_sum = gradients[0].contiguous(), d_normed = gradients[1].contiguous();
    const std::int64_t rows = y.size(0), d = y.size(1), teams = std::min(rows, kPeriNormTeams);
    const at::Tensor d_x = at::empty_like(y), d_y = at::empty_like(y);
    const at::Tensor partial = at::empty({teams, 2, d}, stats.options());
    run(PeriNormBackward{d_sum.const_data_ptr(), d_normed.const_data_ptr(), sum.const_data_ptr(),
                         y.const_data_ptr(), out_scale.const_data_ptr(), in_scale.const_data_ptr(),
                         stats.const_data_ptr(), d_x.mutable_data_ptr(), d_y.mutable_data_ptr(),
                         partial.mutable_data_ptr(), rows, d, teams,
                         context->saved_data["branch"].toDouble()},
        y);
    const at::Tensor d_scales = partial.sum(0).to(y.scalar_type());
    return {d_x, d_y, d_scales[0], d_scales[1], {}, {}};
  }
};

void check(const at::Tensor& tensor, const at::Tensor& like, at::IntArrayRef sizes, const char* name) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.sizes() == sizes &&
                  tensor.scalar_type() == like.scalar_type() && tensor.device() == like.device(),
              "peri_norm: ", name, " must be contiguous, have the sizes ", sizes,
              ", and have x's dtype and device");
}

}  // namespace

PeriNormed peri_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out_scale,
                     const at::Tensor& in_scale, double branch, double epsilon) {
  TORCH_CHECK(x.dim() == 2, "peri_norm: x must be a matrix");
  check(x, x, x.sizes(), "x");
  check(y, x, x.sizes(), "y");
  check(out_scale, x, {x.size(1)}, "out_scale");
  check(in_scale, x, {x.size(1)}, "in_scale");
  const variable_list out = PeriNormFunction::apply(x, y, out_scale, in_scale, branch, epsilon);
  return {out[0], out[1]};
}

PeriNormed peri_norm_of_operators(const at::Tensor& x, const at::Tensor& y, const at::Tensor& out_scale,
                                  const at::Tensor& in_scale, double branch, double epsilon) {
  const at::IntArrayRef d = x.sizes().slice(1);
  const at::Tensor sum = at::add(x, at::layer_norm(y, d, out_scale, /*bias=*/{}, epsilon), branch);
  return {sum, at::layer_norm(sum, d, in_scale, /*bias=*/{}, epsilon)};
}

}  // namespace fomoe::trainer
