// The parts of the model that are averaged one after another, and who averages them.
#pragma once
#include <string>
#include <vector>

#include "costmodel/methods/shared/expert_owners.hpp"
#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// One transfer of a part.
struct PartTransfer {
  std::string what;  // follows "average" in the operation's name
  std::vector<Exchange> exchanges;
};

/// A fragment or, with strategy.layerwise, a part of it.
struct FragmentPart {
  /// They start together: one among all sites and, if each site holds a part of the experts, one among the
  /// owners of each expert. An expert with one owner is an exchange of that owner alone, which sends nothing:
  /// its outer step takes the difference of the same time as that of the rest of the fragment.
  std::vector<PartTransfer> transfers;
  /// The layer that the backward pass must have left: `layers` of the model for an untied unembedding, 0 for
  /// the embedding. Only with layerwise.
  int ready_at = 0;
};

struct FragmentTransfers {
  std::vector<FragmentPart> parts;  // one of them without layerwise
  int first_layer = 0;              // the first layer that the forward pass needs
};

/// The transfers of each fragment that strategy.fragments and fragment_pattern describe, each with every one
/// of `contents`. The last fragment has the embedding tables, which belong to no layer. Without a
/// `placement`, all sites hold all experts. The groups come from tensor_groups_by_layer_and_head() with
/// layerwise, and otherwise from tensor_groups_by_layer().
std::vector<FragmentTransfers> fragment_transfers(const ExpertTransfers& experts,
                                                  const std::vector<Content>& contents,
                                                  const Placement* placement);

}  // namespace fomoe::costmodel
