// DiLoCo with eager updates: the pseudo-gradients of a round are averaged while the next round trains
// (shared/one_round_delay.hpp). Without waiting for the average of the others, each of the M sites applies
// its own pseudo-gradient at once, and replaces it by the average one round later. With Δ_m of site m and
// their average Δ, the outer step of round t uses (Kale et al. 2025)
//   Δ(t−1) + (Δ_m(t) − Δ_m(t−1)) ÷ M
// Bytes and times are those of a delayed average. A site keeps its previous pseudo-gradient for this.
#include "costmodel/methods/all.hpp"
#include "costmodel/methods/shared/one_round_delay.hpp"

namespace fomoe::costmodel {

Method eager_diloco() {
  Method method;
  method.name = "eager_diloco";
  method.summary =
      "All sites average the pseudo-gradients of the whole model while the next K steps run. Each site "
      "applies its own pseudo-gradient at once.";
  method.axes = {"local_steps", "collective", "payload_dtype", "compression"};
  method.source = "Kale et al. 2025, Eager Updates (arXiv 2502.12996)";
  // fp32 anchor and momentum, the pseudo-gradient in flight and the one before
  method.outer_bytes_per_parameter = 16;
  method.not_modelled =
      "eager updates of fragments (use streaming_diloco with overlap_steps for the same times)";
  method.rounds_late = 1;
  method.assumptions = "the average may take as long as the K steps of the next round";
  method.plan = plan_with_delay;
  method.formula = delay_formula;
  return method;
}

}  // namespace fomoe::costmodel
