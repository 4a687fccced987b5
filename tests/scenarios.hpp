// Scenarios for tests: small, ideal, and easy to compute by hand.
#pragma once
#include <string>

#include "costmodel/scenario.hpp"

namespace fomoe::tests {

/// A shape whose payloads every number of sites up to 8 divides: with bf16, dense and expert elements are
/// multiples of 2·3·4·5·7·8 = 6720 where `multiple` is used. No preset: tests must not depend on presets.
inline costmodel::ModelShape divisible_shape() {
  costmodel::ModelShape shape;
  shape.name = "divisible";
  shape.d_model = 6720;
  shape.layers = 2;
  shape.heads = 4;
  shape.experts = 8;
  shape.active_experts = 2;
  shape.d_expert = 16;
  shape.vocabulary = 100;
  shape.sequence_length = 10;
  return shape;
}

/// Equal sites, 1 GB/s up and down, no latency; 1 s per step; 12 rounds of 5 steps of `sites` sequences.
inline costmodel::Scenario ideal_scenario(const std::string& method, int sites, int overlap = 0) {
  costmodel::Scenario scenario;
  scenario.model = divisible_shape();
  scenario.strategy.method = method;
  scenario.strategy.local_steps = 5;
  scenario.strategy.expert_overlap = overlap == 0 ? sites : overlap;
  scenario.workload.global_batch_sequences = sites;
  scenario.workload.tokens = 60LL * sites * scenario.model.sequence_length;
  scenario.compute = costmodel::GivenStepTime{1.0};
  scenario.platform = platforms::uniform(sites, 1e9, 1e9, 0.0);
  return scenario;
}

}  // namespace fomoe::tests
