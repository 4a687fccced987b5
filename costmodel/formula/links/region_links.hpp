// The links inside regions and between them, over which hierarchical methods and collectives send.
#pragma once
#include <vector>

#include "costmodel/formula/links/links.hpp"

namespace fomoe::costmodel {

/// Sites that exchange with each other, and their links.
struct SiteGroup {
  std::vector<int> sites;  // in the order of their ring
  LinkSets links;
};

/// The sites of each region, and, for exchanges between regions, those that have the same rank in theirs
/// (costmodel/compose/composition.hpp).
struct RegionLinks {
  std::vector<SiteGroup> regions, ranks;
};

/// One part of a stage: groups of sites exchange the same bytes at the same time, each over its own links.
struct StagePart {
  Stage stage;
  std::vector<const LinkSets*> links;
  const std::vector<SiteGroup>* groups = nullptr;  // null: all sites
};

/// The parts of a stage, one after another. A stage among all sites has one, over `sets` itself; so has every
/// stage if `sets` knows no regions.
std::vector<StagePart> parts_of(const Stage& stage, const LinkSets& sets);

}  // namespace fomoe::costmodel
