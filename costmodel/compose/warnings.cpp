#include "costmodel/compose/warnings.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "platforms/each_path.hpp"

namespace fomoe::costmodel {

std::vector<std::string> warnings_about(const Scenario& scenario) {
  std::vector<std::string> warnings;
  const auto add_profile = [&](const ComputeSpec& compute) {
    const auto* profiled = std::get_if<ProfiledCompute>(&compute);
    if (profiled == nullptr) return;
    for (const std::string& text : {superseded_text(profiled->profile), disturbed_text(profiled->profile)}) {
      if (!text.empty() && std::find(warnings.begin(), warnings.end(), text) == warnings.end())
        warnings.push_back(text);
    }
  };
  if (scenario.site_compute.empty()) add_profile(scenario.compute);
  for (const SiteCompute& site : scenario.site_compute) add_profile(site.compute);
  return warnings;
}

std::string fewer_connections(const Scenario& scenario) {
  const platforms::Platform& platform = scenario.platform;
  if (platform.measured_connections <= scenario.network.streams) return {};
  NetworkModel host = scenario.network;
  const bool simulated = host.send_buffer_bytes.has_value();
  if (!simulated) host.send_buffer_bytes = linux_host().send_buffer_bytes;
  double least_share = 1, carried = 0;
  int from = 0, to = 0;
  platforms::each_path(platform, [&](int a, int b, const platforms::Path& path) {
    const double cap = flow_cap_bytes_per_s(host, path.latency_s + platform.path(b, a).latency_s,
                                            path.connection_bytes_per_s);
    const double share = cap / platform.route_bytes_per_s(a, b);
    if (share >= least_share) return;
    least_share = share;
    carried = cap;
    from = a;
    to = b;
  });
  if (least_share >= 1) return {};
  std::ostringstream text;
  text << std::setprecision(3) << "the rates of platform " << platform.name << " were measured with "
       << platform.measured_connections << " connections between two sites at a time; the "
       << scenario.network.streams << " of network_model.streams, with a send buffer of "
       << *host.send_buffer_bytes / (1 << 20) << " MiB, carry at most " << carried * 8e-9 << " of the "
       << carried / least_share * 8e-9 << " Gb/s from " << platform.sites[static_cast<std::size_t>(from)].name
       << " to " << platform.sites[static_cast<std::size_t>(to)].name << "; "
       << (simulated ? "a simulation includes this"
                     : "this answer leaves it out, and network_model.host=linux includes it")
       << ", and network_model.streams=" << platform.measured_connections
       << " has the connections of the measurement";
  return text.str();
}

}  // namespace fomoe::costmodel
