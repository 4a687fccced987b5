// Residency: which part of the parameters, moments and gradients a site keeps.
#pragma once
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Sets the shares of weights and gradients that a step of fsdp has on every GPU beside the sharded state. Of
/// the units, one computes and the next one is prefetched; the first unit, with the embedding, is the
/// largest.
inline void gather(SiteLoad& load, const Fixed& fixed, const Axes& axes) {
  const double all = fixed.dense_elements + fixed.expert_elements;
  const double one = 1;
  const double middle = (all - fixed.embedding_elements) / all / axes.fragments;
  const double first = middle + fixed.embedding_elements / all;
  const double computing_and_next = std::min(one, first + middle);
  const bool keeps = fixed.sharding == Sharding::shard_grad_op;
  load.gathered_weights_share = keeps ? (1.0 - load.kept_share) : computing_and_next;
  const bool reduces_each =
      fixed.sharding == Sharding::full_shard || fixed.sharding == Sharding::hybrid_shard;
  load.gathered_gradients_share = reduces_each ? first : one;
}

/// Sets the parameters and shares in `load` that a site keeps, if the method places `held_share` = O_e/M of
/// the experts on the site. O_e is the number of sites that hold each expert, and M is the number of sites.
inline void keep(SiteLoad& load, Residency residency, const Fixed& fixed, const Axes& axes,
                 double held_share) {
  double sites = axes.sites;
  load.dense = fixed.dense_elements;
  load.experts = fixed.expert_elements * held_share;
  if (residency == Residency::sharded) {
    load.site_stages = sites / fixed.stage_sites;
    load.batch_sequences = axes.global_batch_sequences / fixed.stage_sites;
  }
  if (residency == Residency::sharded_gathered) load.kept_share = 1.0 / sites;
  if (residency == Residency::sharded_gathered || fixed.sharding == Sharding::hybrid_shard)
    gather(load, fixed, axes);
  if (residency == Residency::experts_sharded) {
    load.dense =
        /// Adds the router unless dense already includes it.
        load.dense + (fixed.expert_elements - fixed.expert_parameters);
    load.experts = fixed.expert_parameters / sites;
  }
}

}  // namespace fomoe::costmodel
