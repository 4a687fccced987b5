// Rounds in which parts of the model, the fragments, are averaged one after another (Streaming DiLoCo). With
// one fragment and no overlapped steps, these are DiLoCo's rounds.
//
// Without strategy.layerwise, a fragment is sent as a whole after a step, and a site waits for it after τ =
// `overlap_steps` more steps.
//
// With strategy.layerwise, the layers of a fragment are sent one after another behind the backward pass of
// the step before: each one as soon as the backward pass has left it and its parameters are updated. An
// untied unembedding goes first, and the embedding last. After τ more steps, the forward pass waits for the
// fragment where it reaches the fragment's first layer. All layers have arrived by then, because that layer
// was sent last. With gradient accumulation, only the last micro-batch's backward pass and the first one's
// forward pass count.
#pragma once
#include <vector>

#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// The parts of the model in each fragment. Layers are in ascending order.
struct Fragment {
  std::vector<int> layers;
  bool has_tables = false;
};
/// The fragments that strategy.fragments and fragment_pattern describe. The last one has the embedding
/// tables, which belong to no layer.
std::vector<Fragment> fragments_of(const Scenario& scenario);

/// The plan. Each fragment carries every one of `contents`. An outer step follows if these are
/// pseudo-gradients.
Plan plan_of_fragments(const Scenario& scenario, const std::vector<Content>& contents);

/// Throws InputError if strategy.layerwise is set, but the model's layers are not known.
void check_layerwise(const Scenario& scenario);
/// Value of Method::inside_step: layer by layer, transfers begin and are needed within a step.
inline bool sends_layers(const Scenario& scenario) { return scenario.strategy.layerwise; }

}  // namespace fomoe::costmodel
