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
//
// If each site holds a part of the experts, a fragment has its layers' dense parts, which all sites average,
// and their experts, which their owners average at the same time. An expert can change its owners only when
// they have just averaged it: what an owner that gives it up has trained since would be lost, and owners
// would differ in the parameters from which they take their differences. In a round that ends with a
// migration, all fragments are therefore sent after the last step, the sites wait for them, and experts move.
// The round sends the same bytes as others, and hides nothing.
#pragma once
#include <vector>

#include "costmodel/methods/shared/expert_owners.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// The plan. Each fragment carries every one of `contents`. An outer step follows if these are
/// pseudo-gradients. With `owners`, each site holds a part of the experts.
Plan plan_of_fragments(const Scenario& scenario, const std::vector<Content>& contents,
                       const ExpertOwners& owners = {});

/// Throws InputError if strategy.layerwise is set, but the model's layers are not known, or if overlapped
/// steps would be lost because averages replace parameters.
void check_fragments(const Scenario& scenario);
/// Value of Method::inside_step: layer by layer, transfers begin and are needed within a step.
inline bool sends_layers(const Scenario& scenario) { return scenario.strategy.layerwise; }

}  // namespace fomoe::costmodel
