#include "experiments/step_profiles/scale.hpp"

#include <fmt/format.h>

#include "platforms/support/input_error.hpp"

namespace fomoe::step_profiles {
namespace {

double peak(const scenario::Accelerator& device, const std::string& dtype) {
  const auto found = device.peak_flops.find(dtype);
  if (found != device.peak_flops.end()) return found->second;
  throw InputError("profile.dtype",
                   fmt::format("{}, for which the catalogue has no peak of {}", dtype, device.name),
                   "one of " + scenario::known_dtypes(device), device.peak_flops.begin()->first);
}

}  // namespace

costmodel::StepProfile scaled_profile(const costmodel::StepProfile& profile,
                                      const scenario::Accelerator& from, const scenario::Accelerator& to) {
  costmodel::StepProfile scaled = profile;
  // A profile measured by fomoe-train has no origin yet.
  if (!scaled.origin) {
    scaled.origin.emplace();
    scaled.origin->kind = "fomoe-train";
  }
  if (!scaled.origin->scaled.empty()) {
    throw InputError("profile", "times that were scaled already (" + scaled.origin->scaled + ")",
                     "measured times, because a second factor would hide the first",
                     "the profile from which it was scaled");
  }
  const double passes = peak(from, profile.dtype) / peak(to, profile.dtype);
  const double optimizer = from.memory_bytes_per_s / to.memory_bytes_per_s;
  for (costmodel::ProfilePoint& point : scaled.points) {
    for (costmodel::StepSample& sample : point.samples) {
      sample.forward_s *= passes;
      sample.backward_s *= passes;
      sample.optimizer_s *= optimizer;
    }
  }
  // What a synchronisation takes depends on the connection to the host too, which the catalogue does not
  // have.
  scaled.synchronisation.reset();
  scaled.origin->scaled = fmt::format(
      "from {} to {}: forward and backward x {:.4g} (peaks in {}), optimiser x {:.4g} (memory bandwidths)",
      profile.device_name, to.name, passes, profile.dtype, optimizer);
  scaled.device_name = to.name;
  return scaled;
}

}  // namespace fomoe::step_profiles
