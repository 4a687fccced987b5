#include "trainer/optimizer/outer_optimizer.hpp"

#include <stdexcept>

#include "trainer/kernels/outer_step/outer_step.hpp"

namespace fomoe::trainer {

using Kind = costmodel::OuterOptimizer;

OuterOptimizer::OuterOptimizer(OuterOptions options, const std::vector<at::Tensor>& like)
    : options_(options) {
  for (const at::Tensor& tensor : like) {
    if (options_.keeps_momentum) first_.push_back(at::zeros_like(tensor));
    if (options_.kind != Kind::nesterov) second_.push_back(at::zeros_like(tensor));
  }
}

void OuterOptimizer::update(at::Tensor anchor, at::Tensor first, at::Tensor second,
                            const at::Tensor& difference) const {
  const at::Tensor& d = difference;
  switch (options_.kind) {
    case Kind::nesterov:
      if (!options_.keeps_momentum) {
        anchor.sub_(d, options_.learning_rate);
        return;
      }
      if (fits_nesterov_kernel(anchor, first, d)) {
        nesterov_step(anchor, first, d, options_.learning_rate, options_.momentum);
        return;
      }
      first.mul_(options_.momentum).add_(d);
      anchor.sub_(d + options_.momentum * first, options_.learning_rate);
      return;
    case Kind::adam:
    case Kind::yogi: {
      first.mul_(options_.beta1).add_(d, 1 - options_.beta1);
      const at::Tensor square = d * d;
      if (options_.kind == Kind::adam) {
        second.mul_(options_.beta2).add_(square, 1 - options_.beta2);
      } else {
        second.sub_(square * at::sign(second - square), 1 - options_.beta2);
      }
      anchor.sub_(first / (second.sqrt() + options_.adaptivity), options_.learning_rate);
      return;
    }
    default:
      throw std::logic_error("this outer optimiser averages parameters and has no outer step");
  }
}

}  // namespace fomoe::trainer
