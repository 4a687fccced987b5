// The closed form of a run in which no worker waits for another one (costmodel/compute/own_pace.hpp).
#pragma once
#include "costmodel/formula/resolved.hpp"

namespace fomoe::costmodel {

/// Sets resolved.own_pace, and the times and bytes of the mean round that follow from it. The other times of
/// the scenario must be resolved.
void resolve_own_pace(const Scenario& scenario, Resolved& resolved);

/// Seconds of a round in which a site computes, and in which only its transfers are under way; and the bytes
/// of the run that it sends and receives.
struct OwnPaceSite {
  double compute_s = 0, exposed_s = 0;
  double bytes_sent = 0, bytes_received = 0;
};
OwnPaceSite own_pace_site(const Resolved& resolved, int site);

}  // namespace fomoe::costmodel
