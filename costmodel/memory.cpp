#include "costmodel/memory.hpp"

#include "costmodel/flops.hpp"
#include "costmodel/methods/method.hpp"

namespace fomoe::costmodel {

std::int64_t parameters_per_site(const Scenario& scenario) {
  const ParameterCounts counts = count_parameters(scenario.model);
  if (scenario.model.experts == 0) return counts.total();
  const std::int64_t overlap = effective_overlap(scenario), sites = scenario.sites();
  // A remainder is there only where an opaque count does not divide.
  const auto held = [&](std::int64_t elements) {
    return elements / sites * overlap + elements % sites * overlap / sites;
  };
  return counts.dense() + held(counts.expert) +
         (scenario.strategy.skip_token ? counts.router : held(counts.router));
}

double outer_bytes_per_parameter(const Method& method, OuterOptimizer optimizer) {
  if (!has_axis(method, "outer_optimizer")) return method.outer_bytes_per_parameter;
  switch (optimizer) {
    case OuterOptimizer::nesterov:
      return 4 + 4;
    case OuterOptimizer::adam:
    case OuterOptimizer::yogi:
      return 4 + 4 + 4;
    case OuterOptimizer::average:
    case OuterOptimizer::local_adamw:
      return 0;
  }
  return 0;
}

MemoryBytes memory_per_site(const Scenario& scenario) {
  const Method* method = find_method(scenario.strategy.method);
  return resident_memory(
      static_cast<double>(parameters_per_site(scenario)),
      method != nullptr ? outer_bytes_per_parameter(*method, scenario.strategy.outer_optimizer) : 0);
}

}  // namespace fomoe::costmodel
