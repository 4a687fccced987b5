#include "trainer/rope.hpp"

#include <mutex>
#include <tuple>

namespace fomoe::trainer {
namespace {

// cos and sin [S, 1, h/2]. Computed in fp64, for angles near S radians, and then rounded once.
std::tuple<at::Tensor, at::Tensor> angles(std::int64_t positions, std::int64_t head,
                                          const at::TensorOptions& options) {
  // All layers of a step ask for the same table, so the last one is kept.
  static std::mutex mutex;
  static std::int64_t last_positions = 0, last_head = 0;
  static at::Tensor cos, sin;
  const std::scoped_lock lock(mutex);
  const bool known = cos.defined() && last_positions == positions && last_head == head &&
                     cos.device() == options.device() &&
                     cos.scalar_type() == c10::typeMetaToScalarType(options.dtype());
  if (!known) {
    const at::Tensor exponent = at::arange(0, head, 2, at::kDouble) / static_cast<double>(head);
    const at::Tensor frequency = at::pow(at::Scalar(kRopeTheta), -exponent);
    const at::Tensor angle = at::outer(at::arange(positions, at::kDouble), frequency).unsqueeze(1);
    cos = angle.cos().to(options);
    sin = angle.sin().to(options);
    last_positions = positions;
    last_head = head;
  }
  return {cos, sin};
}

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

// A rotation's gradient is the opposite rotation: nothing to save but the angles.
struct RopeFunction : torch::autograd::Function<RopeFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    auto [cos, sin] = angles(x.size(1), x.size(3), x.options());
    context->saved_data["cos"] = cos;
    context->saved_data["sin"] = sin;
    return rotate(x, cos, sin);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    return {
        rotate(gradients[0], context->saved_data["cos"].toTensor(), -context->saved_data["sin"].toTensor())};
  }
};

}  // namespace

at::Tensor rope(const at::Tensor& x) { return RopeFunction::apply(x); }

}  // namespace fomoe::trainer
