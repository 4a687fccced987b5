// DiLoCoX with its one-round delay (shared/one_round_delay.hpp): the pseudo-gradients of a round are averaged
// while the next round trains. Values are int4 with one fp32 scale for each 256 values, unless the scenario
// gives a payload_dtype. DiLoCoX's adaptive low-rank compression and its pipeline inside a site are not
// modelled.
#include "costmodel/methods/all.hpp"
#include "costmodel/methods/shared/one_round_delay.hpp"

namespace fomoe::costmodel {

Method diloco_x() {
  Method method;
  method.name = "diloco_x";
  method.summary =
      "All sites average the int4 pseudo-gradients of the whole model while the next K steps run.";
  method.axes = {"local_steps", "collective", "payload_dtype", "compression"};
  method.source = "Qi et al. 2025, DiLoCoX (arXiv 2506.21263)";
  method.outer_bytes_per_parameter = 12;  // fp32 anchor, momentum, and the pseudo-gradient in flight
  method.usual_wire = plain_format(ElementType::int4);
  method.not_modelled = "low-rank compression with adaptive rank, adaptive K, and the pipeline inside a site";
  method.rounds_late = 1;
  method.assumptions = "int4 values with a scale per 256 values";
  method.plan = plan_with_delay;
  method.formula = delay_formula;
  return method;
}

}  // namespace fomoe::costmodel
