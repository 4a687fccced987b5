// The scenario as one site sees it.
#pragma once
#include <optional>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// A scenario whose compute, gpus, peak_flops, power and catalogue are those of one site, for functions that
/// take the scenario of a site. Without sites that differ it is the given scenario, which is not copied. The
/// given scenario must outlive this object.
class AtSite {
 public:
  AtSite(const Scenario& scenario, int site);
  operator const Scenario&() const { return own_ ? *own_ : *given_; }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] const Scenario& scenario() const { return *this; }

 private:
  const Scenario* given_;
  std::optional<Scenario> own_;
};

/// Whether steps may take longer at some sites than at others.
bool steps_differ(const Scenario& scenario);

/// The GPUs of one site.
inline const SiteGpus& gpus_of_site(const Scenario& scenario, int site) {
  return scenario.site_compute.empty() ? scenario.gpus
                                       : scenario.site_compute[static_cast<std::size_t>(site)].gpus;
}

}  // namespace fomoe::costmodel
