#include "trainer/model/recomputed.hpp"

#include <torch/csrc/autograd/autograd.h>

#include <utility>

namespace fomoe::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct Layer : torch::CustomClassHolder {
  explicit Layer(LayerOf what) : of(std::move(what)) {}
  LayerOf of;
};

struct Recomputed : Function<Recomputed> {
  static variable_list forward(AutogradContext* context, const at::Tensor& input,
                               const c10::intrusive_ptr<Layer>& layer) {
    context->saved_data["layer"] = c10::IValue::make_capsule(layer);
    context->save_for_backward({input});
    const LayerOutput out = layer->of(input, /*again=*/false);
    return out.scalar.defined() ? variable_list{out.output, out.scalar} : variable_list{out.output};
  }
  // The inner backward pass adds to the gradients of the parameters, and ends in the gradient of the input.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto layer = c10::static_intrusive_pointer_cast<Layer>(context->saved_data["layer"].toCapsule());
    const at::AutoGradMode with_gradients(true);
    const at::Tensor input = context->get_saved_variables()[0].detach().requires_grad_();
    const LayerOutput out = layer->of(input, /*again=*/true);
    variable_list roots, of_roots;
    const variable_list outputs = {out.output, out.scalar};
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      roots.push_back(outputs[i]);
      of_roots.push_back(gradients[i]);
    }
    torch::autograd::backward(roots, of_roots);
    return {input.grad(), {}};
  }
};

}  // namespace

LayerOutput recomputed(const at::Tensor& input, LayerOf layer) {
  const variable_list out = Recomputed::apply(input, c10::make_intrusive<Layer>(std::move(layer)));
  return {out[0], out.size() > 1 ? out[1] : at::Tensor()};
}

}  // namespace fomoe::trainer
