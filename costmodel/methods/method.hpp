// A training method: one pure function from scenario to plan. One file and its test per method.
#pragma once
#include <string_view>
#include <vector>

#include "costmodel/plan.hpp"
#include "costmodel/plan_summary.hpp"

namespace fomoe::costmodel {

struct Method {
  std::string_view name;     // strategy.method
  std::string_view summary;  // what is sent, to whom, when: one line
  std::string_view axes;     // keys of [strategy] that change it
  std::string_view source;
  bool partial_experts = false;  // sites may hold a part of the experts (expert_overlap < sites)
  bool outer_state = false;      // keeps an anchor and an outer momentum, 8 B a parameter
  bool every_step = false;       // synchronises after each step: local_steps does not apply
  Plan (*plan)(const Scenario&) = nullptr;
  PlanSummary (*summarise)(const Scenario&) = nullptr;  // the mean round of `plan`, by formula
};

const std::vector<Method>& methods();
/// nullptr where there is none of that name.
const Method* find_method(std::string_view name);

}  // namespace fomoe::costmodel
