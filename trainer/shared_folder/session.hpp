// The part of a shared folder (--store) that belongs to one run.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "trainer/rendezvous/rendezvous.hpp"
#include "trainer/shared_folder/shared_folder.hpp"

namespace fomoe::trainer {

/// Whether the plan sends through a store.
bool has_store(const costmodel::Plan& plan);

/// By node: the bytes that the store has sent to the nodes hosted here; empty without a store.
std::vector<std::int64_t> sent_by_store(const costmodel::Plan& plan, const Transport& transport);

/// Throws UsageError if several processes have a store in their plan and no folder for it, or the other way
/// round.
void check_store(const std::string& folder, const costmodel::Strategy& strategy);

/// Every process calls it: the `first` one makes a folder for this start of the run in the shared folder,
/// removes those that earlier starts of the same run have left, and tells the others its name. `digest` says
/// which run it is; `names` and `timeout_s` are those of SharedFolder. Throws UsageError if a process cannot
/// use the folder.
std::shared_ptr<SharedFolder> join_store(const std::string& folder, const Digest& digest,
                                         Rendezvous& rendezvous, bool first, std::vector<std::string> names,
                                         double timeout_s);

}  // namespace fomoe::trainer
