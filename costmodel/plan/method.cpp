#include "costmodel/plan/method.hpp"

#include <algorithm>

#include "costmodel/inputs/strategy_keys.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

PlanSummary summarise(const Method& method, const Axes& axes, const Fixed& fixed) {
  PlanSummary summary = method.formula(axes, fixed);
  compose(summary, axes, fixed);
  return summary;
}

bool has_axis(const Method& method, std::string_view key) {
  return std::find(method.axes.begin(), method.axes.end(), key) != method.axes.end();
}

bool in_fragments(const Strategy& strategy) {
  const Method& method = *strategy.method;
  if (method.every_step) return false;
  return (strategy.fragments > 1 && has_axis(method, "fragments")) ||
         (strategy.overlap_steps > 0 && has_axis(method, "overlap_steps"));
}

std::vector<std::string> ignored_axes(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategy;
  const Method& method = *strategy.method;
  std::vector<std::string> notes;
  if (strategy.expert_overlap != effective_overlap(scenario) && strategy.expert_overlap != 0)
    notes.push_back(method.name + " keeps every expert at every site, so expert_overlap is ignored");
  for (const StrategyKey& key : kKeysOfSomeMethods) {
    const bool uses_collective = (method.through_store && strategy.collective == Collective::store) ||
                                 (method.through_chain && (strategy.collective == Collective::chain ||
                                                           strategy.collective == Collective::direct));
    if (key.changed(strategy) && !has_axis(method, key.name) &&
        !(uses_collective && key.name == "collective"))
      notes.push_back(method.name + " does not use " + std::string(key.name) + ", so its value is ignored");
  }
  if (strategy.parameter_dtype && !has_axis(method, "parameter_dtype"))
    notes.push_back(method.name + " sends no parameters, so parameter_dtype is ignored");
  if (scenario.platform.store && strategy.collective != Collective::store)
    notes.emplace_back("[platform.store] is only used with strategy.collective = \"store\"");
  if (strategy.dispatch_dtype && !has_axis(method, "dispatch_dtype"))
    notes.push_back(method.name + " does not use dispatch_dtype, so its value is ignored");
  return notes;
}

}  // namespace fomoe::costmodel
