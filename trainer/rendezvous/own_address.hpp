// The address at which a process listens for the processes of other sites.
#pragma once
#include <string>

#include "trainer/rendezvous/launch.hpp"

namespace fomoe::trainer {

/// The address of `launch.interface`, a network interface or an address of this machine. If it is empty, the
/// address from which packets to rank 0 leave. Throws UsageError, with the interfaces that there are.
std::string own_address(const Launch& launch);

}  // namespace fomoe::trainer
