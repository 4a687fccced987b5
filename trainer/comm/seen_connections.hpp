// What the kernel knows about the TCP connections of this process.
#pragma once
#include "experiments/results/run_record.hpp"

namespace fomoe::trainer {

/// The connections that carried at least a hundredth of what the busiest one did: Gloo's, without those of
/// the store and of messages. Also the limits of the system for the buffers of sockets.
scenario::SeenConnections seen_connections();

}  // namespace fomoe::trainer
