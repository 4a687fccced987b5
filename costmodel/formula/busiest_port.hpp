// The port of a site that is busy for the largest share of the run, by formula.
#pragma once
#include "costmodel/formula/resolved.hpp"

namespace fomoe::costmodel {

struct BusyPort {
  int site = 0;
  bool uplink = true;  // otherwise the downlink
  double share = 0;    // of the wall clock: bytes ÷ (rate · wall clock), without latencies and windows
};

/// Of equally busy ports, the first one. Paths and links that several paths share are left out.
BusyPort busiest_port(const Resolved& resolved);

}  // namespace fomoe::costmodel
