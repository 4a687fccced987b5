// SMPI as an oracle: a real MPI program on the simulated network of a platform.
#pragma once
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace fomoe::oracles {

/// When SMPI lets the bytes of a message leave.
enum class Sending {
  rendezvous,  // when sender and receiver both wait for it; the latency comes after that
  eager,       // when the sender sends
};

/// The platform as SimGrid XML: a host a site, its two ports, and for every ordered pair the path between.
/// Written here anew; fomoe's engine builds its network by calls and keeps latencies out of it.
std::string platform_xml(const platforms::Platform& platform);

/// SMPI with every factor that it was fitted with taken out.
std::vector<std::string> without_factors(Sending sending);

/// When each rank was through, with one rank a site. `settings` are passed to SMPI as they are.
std::vector<double> smpi_end_s(const platforms::Platform& platform, const std::string& collective,
                               long elements, const std::vector<std::string>& settings);

}  // namespace fomoe::oracles
