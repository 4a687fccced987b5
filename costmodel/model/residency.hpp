// Residency: which part of the parameters, moments and gradients a site keeps.
#pragma once
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Sets the parameters and shares in `load` that a site keeps, if the method places `held_share` = O_e/M of
/// the experts on the site. O_e is the number of sites that hold each expert, and M is the number of sites.
template <class V>
void keep(SiteLoad<V>& load, Residency residency, const Fixed& fixed, const V& sites, const V& held_share) {
  load.dense = constant<V>(fixed.dense_elements);
  load.experts = fixed.expert_elements * held_share;
  if (residency == Residency::sharded || residency == Residency::sharded_gathered)
    load.kept_share = 1.0 / sites;
  if (residency == Residency::sharded_gathered) load.gathered_share = 1.0 - load.kept_share;
  if (residency == Residency::experts_sharded) {
    load.dense =
        /// Adds the router unless dense already includes it.
        load.dense + (fixed.expert_elements - fixed.expert_parameters);
    load.experts = fixed.expert_parameters / sites;
  }
}

}  // namespace fomoe::costmodel
