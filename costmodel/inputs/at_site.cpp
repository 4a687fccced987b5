#include "costmodel/inputs/at_site.hpp"

namespace fomoe::costmodel {

AtSite::AtSite(const Scenario& scenario, int site) : given_(scenario) {
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

}  // namespace fomoe::costmodel
