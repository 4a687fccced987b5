// Scales a profile's times to another device by the datasheets of both devices. The result counts as an
// assumption.
#pragma once
#include <string>

#include "costmodel/inputs/step_profile.hpp"
#include "experiments/files/accelerators.hpp"

namespace fomoe::step_profiles {

/// forward and backward are multiplied by peak(from) ÷ peak(to) in the profile's number format, assuming that
/// both devices reach the same share of their peak. optimiser is multiplied by bandwidth(from) ÷
/// bandwidth(to), because it streams weights and moments through memory. Other differences between devices
/// (launch latency, caches, kernels written for one of them) are not modelled. Peak memory is kept. Throws
/// InputError if one of the devices has no peak for the profile's format, or if the profile was scaled
/// before.
costmodel::StepProfile scaled_profile(const costmodel::StepProfile& profile,
                                      const scenario::Accelerator& from, const scenario::Accelerator& to);

}  // namespace fomoe::step_profiles
