// The part of a shared folder (--store) that belongs to one run.
#pragma once
#include <memory>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "trainer/comm/shared_folder.hpp"
#include "trainer/rendezvous/rendezvous.hpp"
#include "trainer/run/training_run.hpp"

namespace fomoe::trainer {

/// Whether the plan sends through a store.
bool has_store(const costmodel::Plan& plan);

/// By node: the bytes that the store has sent to the nodes hosted here; empty without a store.
std::vector<std::int64_t> sent_by_store(const costmodel::Plan& plan, const Transport& transport);

/// Throws UsageError if the plan has a store and several processes have no folder for it, or the other way
/// round.
void check_store(const RunRequest& request);

/// Every process calls it: the first one makes a folder for this start of the run in the shared folder,
/// removes those that earlier starts of the same run have left, and tells the others its name. `digest` says
/// which run it is. Throws UsageError if a process cannot use the folder.
std::shared_ptr<SharedFolder> join_store(const RunRequest& request, const costmodel::Plan& plan,
                                         const Digest& digest, Rendezvous& rendezvous);

}  // namespace fomoe::trainer
