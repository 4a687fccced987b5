#include "costmodel/memory.hpp"

#include "costmodel/flops.hpp"
#include "costmodel/methods/method.hpp"

namespace fomoe::costmodel {

std::int64_t parameters_per_site(const Scenario& scenario) {
  const ParameterCounts counts = count_parameters(scenario.model);
  const std::int64_t held = scenario.model.layers * local_experts(scenario);
  const std::int64_t experts = held * expert_elements(scenario.model);
  const bool partial_router = !scenario.strategy.skip_token;
  const std::int64_t router = partial_router ? held * router_column_elements(scenario.model) : counts.router;
  return counts.embedding + counts.attention + counts.dense_ffn + counts.norm + router + experts;
}

double outer_bytes_per_parameter(OuterOptimizer optimizer) {
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
  const auto parameters = static_cast<double>(parameters_per_site(scenario));
  MemoryBytes memory;
  memory.weights = 2 * parameters;
  memory.master_weights = 4 * parameters;
  memory.moments = 8 * parameters;
  memory.gradients = 4 * parameters;
  if (method != nullptr) {
    const double per_parameter = has_axis(*method, "outer_optimizer")
                                     ? outer_bytes_per_parameter(scenario.strategy.outer_optimizer)
                                     : method->outer_bytes_per_parameter;
    memory.outer_state = per_parameter * parameters;
  }
  return memory;
}

}  // namespace fomoe::costmodel
