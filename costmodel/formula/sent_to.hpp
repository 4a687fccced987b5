// The bytes of each site in the closed form, to which sites they go, and which port they keep busy.
#pragma once
#include <vector>

#include "costmodel/formula/resolved.hpp"

namespace fomoe::costmodel {

/// Bytes of a site in the mean round. A site that holds more experts than the mean sends and receives more to
/// average them, and the first site of a star more than the others. Migrated experts count as in the mean
/// over sites.
struct RoundBytes {
  double sent = 0, received = 0;
};
RoundBytes round_bytes(const Resolved& resolved, int site);

/// `bytes`, which a site sends in the run, by receiving site, as the stages of its rounds send them: to the
/// next one of the ring, to the first site, from the first site to each other one, or to all alike.
std::vector<double> sent_to(const Resolved& resolved, int site, double bytes);

/// The port of a site that is busy for the largest share of the run.
struct BusyPort {
  int site = 0;
  bool uplink = true;  // otherwise the downlink
  double share = 0;    // of the wall clock: bytes ÷ (rate · wall clock), without latencies and windows
};

/// Of equally busy ports, the first one. Paths and links that several paths share are left out.
BusyPort busiest_port(const Resolved& resolved);

}  // namespace fomoe::costmodel
