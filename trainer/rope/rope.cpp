#include "trainer/rope/rope.hpp"

namespace fomoe::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// (a, b) ← (a·cos − b·sin, b·cos + a·sin)
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const std::int64_t half = x.size(-1) / 2;
  const at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  at::Tensor out = at::empty(x.sizes(), x.options());
  at::Tensor out_a = out.narrow(-1, 0, half), out_b = out.narrow(-1, half, half);
  at::mul_out(out_a, a, cos).addcmul_(b, sin, /*value=*/-1);
  at::mul_out(out_b, b, cos).addcmul_(a, sin);
  return out;
}

// The gradient of a rotation is the opposite rotation, so only the angles are saved.
struct RopeFunction : torch::autograd::Function<RopeFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cos,
                            const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return rotate(x, cos, sin);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    return {rotate(gradients[0], saved[0], -saved[1]), {}, {}};
  }
};

}  // namespace

RotaryTable rotary_table(std::int64_t positions, std::int64_t head, const at::TensorOptions& options,
                         double theta) {
  // The angles, up to S radians, are computed in fp64 and then rounded once.
  const at::TensorOptions fp64 = options.dtype(at::kDouble);
  const at::Tensor exponent = at::arange(0, head, 2, fp64) / static_cast<double>(head);
  const at::Tensor frequency = at::pow(at::Scalar(theta), -exponent);
  const at::Tensor angle = at::outer(at::arange(positions, fp64), frequency).unsqueeze(1);
  return {angle.cos().to(options), angle.sin().to(options)};
}

at::Tensor rope(const at::Tensor& x, const RotaryTable& table) {
  return RopeFunction::apply(x, table.cos, table.sin);
}

}  // namespace fomoe::trainer
