#include "costmodel/plan/site_shares.hpp"

#include "costmodel/plan/method.hpp"

namespace fomoe::costmodel {

int effective_overlap(const Scenario& scenario) {
  return scenario.strategy.method->partial_experts ? scenario.strategy.expert_overlap : scenario.sites();
}

std::int64_t local_experts(const Scenario& scenario) {
  return scenario.model.experts * effective_overlap(scenario) / scenario.sites();
}

std::int64_t local_batch_sequences(const Scenario& scenario, int site) {
  if (scenario.strategy.method->one_site) return site == 0 ? scenario.workload.global_batch_sequences : 0;
  return chunk_elements(scenario.workload.global_batch_sequences, scenario.sites(), site);
}

std::int64_t optimizer_steps(const Scenario& scenario) {
  const std::int64_t tokens_per_step =
      scenario.workload.global_batch_sequences * scenario.model.sequence_length;
  return (scenario.workload.tokens + tokens_per_step - 1) / tokens_per_step;
}

}  // namespace fomoe::costmodel
