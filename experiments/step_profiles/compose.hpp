// Steps of a deep model from steps of two shallow ones, where the deep one fits on no device at hand or takes
// too long.
#pragma once
#include <cstdint>

#include "costmodel/inputs/step_profile.hpp"

namespace fomoe::step_profiles {

/// All layers do the same work, so that a part of a step takes
///
///   t(L) = t(a) + (L − a)·(t(b) − t(a)) / (b − a)
///
/// where t(a) and t(b), a < b, are medians of the two profiles: embedding and head once, each layer (b − a)⁻¹
/// of their difference. Peak memory likewise. One sample for each point that both profiles have. What a deep
/// model adds beyond its layers (a fuller memory, a fragmented allocator) is not in it. Throws InputError
/// where the two are not the same model but for their layers, of one device and format, `shallow` has not
/// fewer layers, `layers` is fewer than `deep` has, they have no point in common, or a layer would take less
/// than no time.
costmodel::StepProfile composed_profile(const costmodel::StepProfile& shallow,
                                        const costmodel::StepProfile& deep, std::int64_t layers);

}  // namespace fomoe::step_profiles
