// Computes the step times of a deep model from those of two shallow ones. This serves models that are too
// large or too slow for the available devices.
#pragma once
#include <cstdint>

#include "costmodel/inputs/step_profile.hpp"

namespace fomoe::step_profiles {

/// All layers are assumed to do the same work, or all groups of layers if they are of several kinds, so each
/// part of a step takes
///
///   t(L) = t(a) + (L − a)·(t(b) − t(a)) / (b − a)
///
/// where L is the number of layers of the result, a and b (a < b) are the numbers of layers of the two
/// profiles, and t(a) and t(b) are the median times in the profiles. Each layer takes 1/(b − a) of the
/// difference. Embedding and head, which every model has once, are part of t(a). Peak memory is computed in
/// the same way. The result has one sample for each point that both profiles contain. The computation ignores
/// effects that occur only in the deep model, such as a fuller or more fragmented memory. Throws InputError
/// if the profiles differ in more than their number of layers (model, device or format), if `shallow` has no
/// fewer layers than `deep`, if `layers` is smaller than the number of layers of `deep`, if the profiles
/// share no point, or if a layer's time would be negative.
costmodel::StepProfile composed_profile(const costmodel::StepProfile& shallow,
                                        const costmodel::StepProfile& deep, std::int64_t layers);

}  // namespace fomoe::step_profiles
