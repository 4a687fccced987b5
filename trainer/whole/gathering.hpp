// Puts the whole model together while a run is under way, at one process.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "costmodel/plan/placement.hpp"
#include "costmodel/plan/plan.hpp"
#include "trainer/execution/executor.hpp"
#include "trainer/whole/whole_model.hpp"

namespace fomoe::trainer {

/// Who holds which experts after so many rounds: all nodes hold all, unless the plan has a placement.
costmodel::Placement owners_after(const costmodel::Plan& plan, const costmodel::ModelShape& model,
                                  std::int64_t rounds);

/// The parameters of the whole model, at the process that hosts the first worker; nothing at the others.
/// Every process must call it, between two rounds. `placement` says who holds which experts at this moment.
/// The first owner of each expert sends it to the first worker; if sites differ, because they train on while
/// others' values travel, all send all that they have, and the model has the means. Transport::traffic() does
/// not count these bytes, which belong to no plan. `absent`, by node, are nodes of lost sites. The first
/// worker must be present, and every expert must have an owner that is. Throws SiteLost.
std::optional<WholeModel> gather_whole(Executor& executor, Transport& transport,
                                       const costmodel::Placement& placement,
                                       const std::vector<bool>& absent = {}, bool sites_differ = false);

/// The experts, as (layer, expert), whose owners are all absent.
std::vector<std::pair<int, int>> experts_without_owner(const costmodel::Placement& placement,
                                                       const std::vector<bool>& absent);

}  // namespace fomoe::trainer
