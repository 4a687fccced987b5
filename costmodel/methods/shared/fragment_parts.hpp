// The parts of the model that are averaged one after another, and who averages them.
#pragma once
#include <string>
#include <vector>

#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// The parts of the model in each fragment. Layers are in ascending order.
struct Fragment {
  std::vector<int> layers;
  bool has_tables = false;
};
/// The fragments that strategy.fragments and fragment_pattern describe. The last one has the embedding
/// tables, which belong to no layer.
std::vector<Fragment> fragments_of(const Scenario& scenario);

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

/// The transfers of each fragment, each with every one of `contents`. Without a `placement`, all sites hold
/// all experts. `groups` come from tensor_groups_by_layer_and_head() with layerwise, and otherwise from
/// tensor_groups_by_layer().
std::vector<FragmentTransfers> fragment_transfers(const Scenario& scenario,
                                                  const std::vector<TensorGroup>& groups,
                                                  const std::vector<Content>& contents,
                                                  const Placement* placement);

/// The tensor group of the first expert in these lists of groups.
GroupId first_expert_by_layer(const Scenario& scenario);

}  // namespace fomoe::costmodel
