// Puts the whole model together while a run is under way, at one process.
#pragma once
#include <optional>

#include "costmodel/plan/placement.hpp"
#include "trainer/execution/executor.hpp"
#include "trainer/whole/whole_model.hpp"

namespace fomoe::trainer {

/// The parameters of the whole model, at the process that hosts the first worker; nothing at the others.
/// Every process must call it, between two rounds. `placement` says who holds which experts at this moment.
/// The first owner of each expert sends it to the first worker; Transport::traffic() does not count these
/// bytes, which belong to no plan. Throws SiteLost.
std::optional<WholeModel> gather_whole(Executor& executor, Transport& transport,
                                       const costmodel::Placement& placement);

}  // namespace fomoe::trainer
