// Times what a site does for a synchronisation apart from the network. This header does not include LibTorch.
#pragma once
#include <iosfwd>
#include <optional>

#include "costmodel/inputs/step_profile.hpp"
#include "trainer/step/profile.hpp"

namespace fomoe::trainer {

/// Times synchronisations of the profiled model, with the most experts of `options`, by the code of a
/// training: each payload is read from the model, encoded, moved to the host as for the network, replaced by
/// zeros, which are moved back, decoded and added, and its mean is written; then follows an outer step with
/// Nesterov momentum. The partner is an imaginary site that answers at once: a ring of two sites, in which
/// each sends as many bytes as the payload has. Empty if the state does not fit into the device's memory.
std::optional<costmodel::SynchronisationTimes> measure_synchronisation(const ProfileOptions& options,
                                                                       std::ostream& progress);

}  // namespace fomoe::trainer
