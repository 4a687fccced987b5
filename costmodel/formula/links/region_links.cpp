#include "costmodel/formula/links/region_links.hpp"

namespace fomoe::costmodel {

namespace {

StagePart among(const std::vector<SiteGroup>& groups, Stage stage) {
  stage.among = Among::all_sites;
  StagePart part{std::move(stage), {}, &groups};
  for (const SiteGroup& group : groups) part.links.push_back(&group.links);
  return part;
}

/// The part of a hierarchical all-reduce that is a ring of these nodes, in which each site sends these bytes.
Stage ring_of(const Stage& whole, double nodes, double bytes) {
  Stage ring = whole;
  ring.latency_hops = 2.0 * (nodes - 1.0);
  ring.bytes = ring.pair_bytes = bytes;
  return ring;
}

}  // namespace

std::vector<StagePart> parts_of(const Stage& stage, const LinkSets& sets) {
  if (stage.among == Among::all_sites || sets.regions == nullptr) return {{stage, {&sets}, nullptr}};
  const RegionLinks& links = *sets.regions;
  if (stage.among == Among::region) return {among(links.regions, stage)};
  // The all-reduces inside a region of n sites, and of 1/n of the bytes between R regions: the reduce-scatter
  // and the all-gather inside, which are before and after, are one part here.
  const auto regions = static_cast<double>(links.regions.size());
  const auto inside = static_cast<double>(links.ranks.size());
  const double averaged = stage.bytes / all_reduce_factor(regions * inside);
  return {among(links.regions, ring_of(stage, inside, averaged * all_reduce_factor(inside))),
          among(links.ranks, ring_of(stage, regions, averaged * all_reduce_factor(regions) / inside))};
}

}  // namespace fomoe::costmodel
