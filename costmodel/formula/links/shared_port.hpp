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

}  // namespace fomoe::costmodel
