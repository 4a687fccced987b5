// Utilisation of each link over time.
#pragma once
#include <string>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "platforms/platform.hpp"

namespace fomoe::costmodel {

/// Bytes per second of one link in equally long bins. Each flow counts with its mean rate from first to last
/// byte. Where a link of constant rate would then carry more than it can, because flows change their rates
/// when others begin or end, bytes count in other bins of the flow: no bin then has more than 0.4 % above the
/// rate. Transfers at average rates (Plan::averaged_paths) keep no such limit. The sum over all bins is
/// exact.
struct LinkUsage {
  std::string link;
  double capacity_bytes_per_s = 0;
  std::vector<double> bytes_per_s;
};

/// Usage of the links that carried bytes, from a timeline with recorded flows. `platform` is the effective
/// one.
std::vector<LinkUsage> link_usage(const Plan& plan, const platforms::Platform& platform,
                                  const Timeline& timeline, int bins);

}  // namespace fomoe::costmodel
