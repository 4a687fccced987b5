// Scenarios whose sites have different GPUs, step times and parts of the batch.
#pragma once
#include <string>

#include "tests/draws.hpp"
#include "tests/scenarios.hpp"

namespace fomoe::tests {

/// Each site has its own number of GPUs, peak rate, MFU and part of the batch, drawn independently; a step
/// takes about a second. One site in four has a given step time instead.
inline costmodel::Scenario differing_scenario(const std::string& method, int sites, Draws& draws) {
  costmodel::Scenario scenario = ideal_scenario(method, sites);
  scenario.workload.global_batch_sequences = 64LL * sites + draws.below(64);
  scenario.workload.tokens =
      (20 + draws.below(60)) * scenario.workload.global_batch_sequences * scenario.model.sequence_length;
  for (int site = 0; site < sites; ++site) {
    costmodel::SiteCompute own;
    own.gpus.count = 1 + draws.below(8);
    own.gpus.gpu_memory_bytes = 1e9 * draws.between(100, 200);
    own.gpus.memory_bytes_per_s = 1e9 * draws.between(1, 10);  // outer steps of up to a second
    own.gpus.micro_batch_sequences = 1 + draws.below(4);
    own.peak_flops = 1e12 * draws.between(1, 4);
    own.compute = costmodel::AssumedDevice{own.peak_flops, draws.between(0.2, 0.6), 0};
    if (draws.chance(0.25)) own.compute = costmodel::GivenStepTime{draws.between(0.2, 2)};
    own.power = costmodel::GpuPower{draws.between(300, 1000), 0.2, 1.1};
    scenario.site_compute.push_back(own);
    scenario.workload.batch_shares.push_back(draws.between(0.5, 2));
  }
  scenario.power = scenario.site_compute.front().power;
  return scenario;
}

}  // namespace fomoe::tests
