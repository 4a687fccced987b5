// Flows through a port that they share fairly.
#pragma once
#include <vector>

namespace fomoe::costmodel {

/// A flow through a port that others share: when its first byte reaches the port, its bytes, and the rate
/// that it has alone.
struct PortFlow {
  double start_s;
  double bytes;
  double alone_bytes_per_s;
};

/// When flows end that share a port fairly (max-min): a flow that cannot use its equal part leaves the rest
/// of it to the others.
std::vector<double> ends_s(const std::vector<PortFlow>& flows, double port_bytes_per_s);

/// A transfer of equal steps, of which each begins when what the one before has sent has arrived.
struct Chain {
  double steps;
  double bytes;  // of a step
  double flows;  // of a step
};

/// When both of two transfers have ended that begin together and share a port, flow by flow, in seconds.
/// While one waits for a latency, the other one has the port.
double both_end_s(const Chain& a, const Chain& b, double latency_s, double port_bytes_per_s);

}  // namespace fomoe::costmodel
