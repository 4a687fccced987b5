// Computes the step times of a deep model from those of two shallow ones. This serves models that are too
// large or too slow for the available devices.
#pragma once
#include <cstdint>

#include "costmodel/inputs/step_profile.hpp"

namespace fomoe::step_profiles {

/// All layers are assumed to do the same work, so each part of a step takes
///
///   t(L) = t(a) + (L − a)·(t(b) − t(a)) / (b − a)
///
/// where t(a) and t(b), a < b, are medians of the two profiles. Embedding and head count once, and each layer
/// takes 1/(b − a) of the difference. Peak memory is computed in the same way. The result has one sample for
/// each point that both profiles contain. It excludes effects of the deep model beyond its layers, such as a
/// fuller or more fragmented memory. Throws InputError if the profiles differ in more than their number of
/// layers (model, device or format), if `shallow` has no fewer layers than `deep`, if `layers` is smaller
/// than the number of layers of `deep`, if the profiles share no point, or if a layer's time would be
/// negative.
costmodel::StepProfile composed_profile(const costmodel::StepProfile& shallow,
                                        const costmodel::StepProfile& deep, std::int64_t layers);

}  // namespace fomoe::step_profiles
