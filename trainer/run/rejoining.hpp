// A site that comes back after the others have gone on without it gets the newest state from them.
//
// It needs the dense parameters from one site and each of its experts from an owner, with the state of the
// optimisers. So the sites that it needs send it their checkpoint files. An expert that only this site owns
// has been trained by nobody meanwhile: it comes from the site's own last checkpoint, or, if the site has
// none, it starts again from its initial weights.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/execution/checkpoints.hpp"
#include "trainer/execution/executor.hpp"
#include "trainer/rendezvous/rendezvous.hpp"
#include "trainer/run/starting_point.hpp"

namespace fomoe::trainer {

/// Who gets the state of node `node` from whom: the first node that has a state, and further nodes for the
/// experts that it does not hold. `has_state` is indexed by node.
std::vector<costmodel::NodeId> donors_of(const costmodel::Plan& plan, std::int64_t rounds,
                                         costmodel::NodeId node, const std::vector<bool>& has_state);

/// Brings the state after `state.rounds` rounds to the sites that lack it. Every process that takes part
/// calls it; those that have the state have it in their executor. One process trains each site. `absent` is
/// indexed by node. Returns a sentence about each node of this process that lacked its state. Throws
/// SiteLost, and FileError if a node that is no worker lacks its state.
std::vector<std::string> bring_state(Executor& executor, Transport& transport,
                                     std::optional<Rendezvous>& rendezvous, const costmodel::Plan& plan,
                                     const Checkpoints& checkpoints, const CommonState& state,
                                     const std::vector<bool>& absent);

}  // namespace fomoe::trainer
