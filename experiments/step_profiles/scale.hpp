// Scales a profile's times to another device by the datasheets of both devices. The result counts as an
// assumption.
#pragma once
#include <string>

#include "costmodel/inputs/step_profile.hpp"
#include "experiments/files/accelerators.hpp"

namespace fomoe::step_profiles {

/// The forward and backward times are multiplied by peak(from) ÷ peak(to), where peak is the FLOP/s in the
/// profile's number format. This assumes that both devices reach the same share of their peak. The time of
/// the optimiser is multiplied by bandwidth(from) ÷ bandwidth(to), where bandwidth is that of the device's
/// memory, because the optimiser reads and writes all weights and moments in memory. Other differences
/// between devices (launch latency, caches, kernels written for one of them) are not modelled. The peak
/// memory in the profile is not changed. Throws InputError if one of the devices has no peak for the
/// profile's format, or if the profile was scaled before.
costmodel::StepProfile scaled_profile(const costmodel::StepProfile& profile,
                                      const scenario::Accelerator& from, const scenario::Accelerator& to);

}  // namespace fomoe::step_profiles
