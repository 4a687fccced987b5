// Streaming DiLoCo: the model is cut into P fragments of whole layers. Each fragment is averaged among all M
// sites every K steps, as in DiLoCo. With the paper's strided pattern, layer l belongs to fragment l mod P;
// fragment_pattern = "sequential" has consecutive layers, and "balanced" fragments have about equal bytes.
// Fragment p is sent after step ⌊(p+1)·K/P⌋ of the round, so that the fragments take turns. The site
// continues to train while a fragment is sent. After τ = `overlap_steps` more steps, the site waits until the
// fragment has arrived and applies the fragment's outer step. With `layerwise`, transfers begin behind the
// backward pass and end when the forward pass needs them, as in the paper's simulator
// (shared/fragment_formula.hpp). The last fragment also has the embedding, which belongs to no layer (the
// paper does not assign the embedding to a fragment). Each site sends B bytes per round, in transfers of
// about S/P, where S is the size of the whole model:
//   B = 2(M−1)/M · S
// By default a fragment has three layers, τ = 1 and payloads are int4, the closest format to the paper's
// 4-bit floats.
#include <algorithm>

#include "costmodel/methods/all.hpp"
#include "costmodel/methods/shared/fragment_formula.hpp"
#include "costmodel/methods/shared/fragment_rounds.hpp"

namespace fomoe::costmodel {

namespace {

Plan plan(const Scenario& scenario) { return plan_of_fragments(scenario, {Content::pseudo_gradient}); }

PlanSummary formula(const Axes& axes, const Fixed& fixed) {
  return summary_of_fragments(axes, fixed, axes.bytes_per_element);
}

// Three layers in each fragment, as in the paper. Fragments take turns within the steps of a round.
int usual_fragments(const ModelShape& model, const Strategy& strategy) {
  if (strategy.secure_aggregation) return 1;  // masks all-reduces that start together
  const std::int64_t by_layers = (model.layers + 2) / 3;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(by_layers, strategy.local_steps)));
}

}  // namespace

Method streaming_diloco() {
  Method method;
  method.name = "streaming_diloco";
  method.summary =
      "All sites average the pseudo-gradients of one fragment of the layers after another, while training "
      "continues.";
  method.axes = {"local_steps", "fragments",  "fragment_pattern", "overlap_steps",
                 "layerwise",   "collective", "payload_dtype",    "compression"};
  method.source = "Douillard et al. 2025, Streaming DiLoCo (arXiv 2501.18512)";
  method.outer_bytes_per_parameter = 8;  // fp32 anchor and momentum
  method.usual_fragments = usual_fragments;
  method.usual_overlap_steps = 1;                       // τ of the paper's main experiments
  method.usual_wire = plain_format(ElementType::int4);  // closest to the paper's 4-bit floats
  method.not_modelled = "the mixing factor α, which changes quality but no bytes";
  method.assumptions =
      "int4 with a scale per 256 values in place of 4-bit floats; the embedding is in the last fragment; "
      "layer by layer, one transfer follows another in the order of the backward pass; what is still in "
      "flight "
      "at the end of the run is sent, and nobody uses it";
  method.inside_step = sends_layers;
  method.check = check_fragments;
  method.plan = plan;
  method.formula = formula;
  return method;
}

}  // namespace fomoe::costmodel
