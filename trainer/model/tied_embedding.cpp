#include "trainer/model/tied_embedding.hpp"

#include <utility>

namespace fomoe::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct TiedLookup : torch::autograd::Function<TiedLookup> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& embedding, const at::Tensor& tokens,
                            const TiedGradientHandle& tied) {
    context->saved_data["tied"] = c10::IValue::make_capsule(tied);
    context->saved_data["sizes"] = embedding.sizes();
    context->save_for_backward({tokens});
    return embedding.index_select(0, tokens);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto tied =
        c10::static_intrusive_pointer_cast<TiedGradient>(context->saved_data["tied"].toCapsule());
    const at::Tensor tokens = context->get_saved_variables()[0];
    at::Tensor sum = std::exchange(tied->unembedding, at::Tensor());
    if (!sum.defined()) {  // the loss does not use the unembedding
      sum = at::zeros(context->saved_data["sizes"].toIntVector(), gradients[0].options());
    }
    if (sum.is_cuda()) {
      sum.index_put_({tokens}, gradients[0],
                     // LibTorch sorts the rows here: unlike atomics, that gives the same sum every time
                     /*accumulate=*/true);
    } else {
      sum.index_add_(0, tokens, gradients[0]);
    }
    return {sum, {}, {}};
  }
};

}  // namespace

at::Tensor tied_lookup(const at::Tensor& embedding, const at::Tensor& tokens,
                       const TiedGradientHandle& tied) {
  return TiedLookup::apply(embedding, tokens, tied);
}

}  // namespace fomoe::trainer
