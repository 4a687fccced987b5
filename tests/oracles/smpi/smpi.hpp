// SMPI as an oracle: it runs a real MPI program on the simulated network of a platform.
#pragma once
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace fomoe::oracles {

/// The moment at which SMPI lets the bytes of a message leave.
enum class Sending {
  rendezvous,  // when both sender and receiver wait for the message; the latency follows
  eager,       // when the sender sends
};

/// The platform as SimGrid XML: a host with two ports for each site, and a path for every ordered pair. It is
/// independent of fomoe's engine, which builds its network by calls and keeps latencies out of it.
std::string platform_xml(const platforms::Platform& platform);

/// The settings that disable all fitted factors of SMPI.
std::vector<std::string> without_factors(Sending sending);

/// The time at which each rank ends, with one rank per site. `settings` are passed to SMPI unchanged.
std::vector<double> smpi_end_s(const platforms::Platform& platform, const std::string& collective,
                               long elements, const std::vector<std::string>& settings);

}  // namespace fomoe::oracles
