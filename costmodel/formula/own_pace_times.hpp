// The closed form of a run in which no worker waits for another one (costmodel/compute/own_pace.hpp).
#pragma once
#include "costmodel/formula/resolved.hpp"

namespace fomoe::costmodel {

/// Sets the times of the mean round that follow from resolved.own_pace. The other times must be resolved.
void set_paced_times(Resolved& resolved);

/// Seconds of a round in which a site computes, and in which only its transfers are under way; and the bytes
/// of the run that it sends and receives.
struct OwnPaceSite {
  double compute_s = 0, exposed_s = 0;
  double bytes_sent = 0, bytes_received = 0;
};
OwnPaceSite own_pace_site(const Resolved& resolved, int site);

}  // namespace fomoe::costmodel
