// A profile's times as they might be on another device, by what the two devices' vendors say: an assumption.
#pragma once
#include <string>

#include "costmodel/inputs/step_profile.hpp"
#include "experiments/files/accelerators.hpp"

namespace fomoe::step_profiles {

/// forward and backward · peak(from) ÷ peak(to) in the profile's number format: the same share of the peak is
/// reached. optimiser · bandwidth(from) ÷ bandwidth(to): it streams weights and moments through memory. What
/// another device does differently (launch latency, caches, kernels written for one of them) is not in it.
/// Peak memory is kept. Throws InputError where one of the two has no peak of the profile's format, or the
/// profile was scaled before.
costmodel::StepProfile scaled_profile(const costmodel::StepProfile& profile,
                                      const scenario::Accelerator& from, const scenario::Accelerator& to);

}  // namespace fomoe::step_profiles
