#include "costmodel/inputs/at_site.hpp"

#include <algorithm>

namespace fomoe::costmodel {

AtSite::AtSite(const Scenario& scenario, int site) : given_(&scenario) {
  if (scenario.site_compute.empty()) return;
  const SiteCompute& own = scenario.site_compute[static_cast<std::size_t>(site)];
  own_ = scenario;
  own_->site_compute.clear();
  own_->compute = own.compute;
  own_->gpus = own.gpus;
  own_->peak_flops = own.peak_flops;
  own_->power = own.power;
  own_->catalogue = own.catalogue;
}

bool steps_differ(const Scenario& scenario) {
  const std::vector<platforms::Site>& sites = scenario.platform.sites;
  return !scenario.site_compute.empty() || !scenario.workload.batch_shares.empty() ||
         std::any_of(sites.begin(), sites.end(), [&](const platforms::Site& site) {
           return site.compute_factor != sites.front().compute_factor;
         });
}

}  // namespace fomoe::costmodel
