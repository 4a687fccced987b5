#include "costmodel/memory.hpp"

#include "costmodel/flops.hpp"
#include "costmodel/methods/method.hpp"

namespace fomoe::costmodel {

std::int64_t parameters_per_site(const Scenario& scenario) {
  const ParameterCounts counts = count_parameters(scenario.model);
  const Method* method = find_method(scenario.strategy.method);
  const Residency residency = method != nullptr ? method->residency : Residency::replica;
  if (residency == Residency::sharded) return chunk_elements(counts.total(), scenario.sites(), 0);
  if (residency == Residency::experts_sharded)
    return counts.total() - counts.expert + chunk_elements(counts.expert, scenario.sites(), 0);
  const std::int64_t held = scenario.model.layers * local_experts(scenario);
  const std::int64_t experts = held * expert_elements(scenario.model);
  const bool partial_router = !scenario.strategy.skip_token;
  const std::int64_t router = partial_router ? held * router_column_elements(scenario.model) : counts.router;
  return counts.embedding + counts.attention + counts.dense_ffn + counts.norm + router + experts;
}

MemoryBytes memory_per_site(const Scenario& scenario) {
  const Method* method = find_method(scenario.strategy.method);
  return resident_memory(static_cast<double>(parameters_per_site(scenario)),
                         method != nullptr ? method->outer_bytes_per_parameter : 0);
}

}  // namespace fomoe::costmodel
