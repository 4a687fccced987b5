#include "costmodel/plan/method.hpp"

#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

bool has_axis(const Method& method, std::string_view key) {
  for (std::string_view rest = method.axes; !rest.empty();) {
    const std::size_t comma = rest.find(", ");
    if (rest.substr(0, comma) == key) return true;
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 2);
  }
  return false;
}

std::vector<std::string> ignored_axes(const Scenario& scenario) {
  const Method& method = *scenario.strategy.method;
  const Strategy& asked = scenario.strategy;
  const Strategy usual;
  std::vector<std::string> notes;
  const auto note = [&](const char* key, bool is_asked) {
    if (is_asked && !has_axis(method, key))
      notes.push_back(std::string(method.name) + " has no " + key + ": the scenario's value is ignored");
  };
  if (asked.expert_overlap != effective_overlap(scenario) && asked.expert_overlap != 0)
    notes.push_back(std::string(method.name) +
                    " keeps every expert at every site: expert_overlap is ignored");
  note("overlap_steps", asked.overlap_steps != usual.overlap_steps);
  note("fragments", asked.fragments != usual.fragments);
  note("outer_optimizer", asked.outer_optimizer != usual.outer_optimizer);
  note("outer_state_on_migration", asked.outer_state_on_migration != usual.outer_state_on_migration);
  note("moment1_period", asked.moment1_period != usual.moment1_period);
  note("moment2_period", asked.moment2_period != usual.moment2_period);
  note("gossip_peers", asked.gossip_peers != usual.gossip_peers);
  note("staleness", asked.staleness != usual.staleness);
  note("placement", asked.placement != usual.placement);
  note("reshuffle_rounds", asked.reshuffle_rounds != usual.reshuffle_rounds);
  note("collective", asked.collective != usual.collective);
  note("router", asked.router != usual.router);
  note("capacity_factor", asked.capacity_factor != usual.capacity_factor);
  note("max_sites_per_token", asked.max_sites_per_token != usual.max_sites_per_token);
  note("micro_batches", asked.micro_batches != usual.micro_batches);
  note("module_levels", asked.module_levels != usual.module_levels);
  note("module_choices", asked.module_choices != usual.module_choices);
  return notes;
}

}  // namespace fomoe::costmodel
