// Writes and reads traffic plans as JSON, schema "fomoe.plan/1" (see experiments/plans/README.md). A method
// can thus be tried or inspected without C++.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/plan/plan.hpp"

namespace fomoe::scenario {

/// `executed[c]` lists the rounds of class c whose operations are written. Equal rounds are written once.
std::string plan_json(const costmodel::Plan& plan, const std::vector<std::vector<std::int64_t>>& executed);

/// Throws FileError. The plan contains only the rounds that the file describes. In a class of identical
/// rounds, the last of these stands for all further rounds. For other classes, RoundClass::known is their
/// number. Nodes of the kind store need a platform that has one.
costmodel::Plan read_plan(const std::string& path, int sites, bool store = false);

}  // namespace fomoe::scenario
