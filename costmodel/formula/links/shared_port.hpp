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

/// A transfer of equal steps. After each of them it waits, until what it has sent has arrived.
struct Chain {
  double steps;
  double bytes;   // of a step
  double flows;   // of a step
  double wait_s;  // after each step
};

/// When both of two transfers have ended that begin together and share a port, flow by flow, in seconds.
/// While one waits, the other one has the port.
double both_end_s(const Chain& a, const Chain& b, double port_bytes_per_s);

/// A transfer of equal messages over a connection. Each begins when the one before has been sent and has
/// arrived.
struct Turns {
  double messages;
  double send_s;  // of a message that has the connection
  double wait_s;  // until it has arrived
};

/// When both of two transfers have ended that begin together on one connection, which sends one message after
/// another. If both are ready, the first one goes first.
double in_turn_s(Turns first, Turns second);

}  // namespace fomoe::costmodel
