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
  if (scenario.model.experts == 0) return counts.total();
  const std::int64_t overlap = effective_overlap(scenario), sites = scenario.sites();
  // A remainder is there only where an opaque count does not divide.
  const auto held = [&](std::int64_t elements) {
    return elements / sites * overlap + elements % sites * overlap / sites;
  };
  return counts.dense() + held(counts.expert) +
         (scenario.strategy.skip_token ? counts.router : held(counts.router));
}

MemoryBytes memory_per_site(const Scenario& scenario) {
  const Method* method = find_method(scenario.strategy.method);
  return resident_memory(static_cast<double>(parameters_per_site(scenario)),
                         method != nullptr ? method->outer_bytes_per_parameter : 0);
}

}  // namespace fomoe::costmodel
