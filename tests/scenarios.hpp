// Scenarios for tests: small, ideal, and easy to compute by hand.
#pragma once
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"

namespace fomoe::tests {

/// A shape whose payloads every number of sites up to 8 divides: the elements of each tensor group are a
/// multiple of d_model = 2·3·4·5·7·8 = 6720. It is no preset, since tests must not depend on presets.
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

/// Equal sites with 1 GB/s up and down and no latency; 12 rounds of 5 steps of 1 s, with `sites` sequences
/// per step. An `overlap` of 0 sets O_e = `sites`.
inline costmodel::Scenario ideal_scenario(const std::string& method, int sites, int overlap = 0) {
  costmodel::Scenario scenario;
  scenario.model = divisible_shape();
  scenario.strategy.method = costmodel::find_method(method);
  scenario.strategy.local_steps = 5;
  scenario.strategy.expert_overlap = overlap == 0 ? sites : overlap;
  scenario.workload.global_batch_sequences = sites;
  scenario.workload.tokens = 60LL * sites * scenario.model.sequence_length;
  scenario.compute = costmodel::GivenStepTime{1.0};
  scenario.platform = platforms::uniform(sites, 1e9, 1e9, 0.0);
  return scenario;
}

/// A shape whose payloads need no rounding in any number format. Every tensor group is a multiple of d_model
/// = 8·4096, so that 2, 4 or 8 sites, blocks of 256 with a common scale, and top-k groups of 4096 divide it.
inline costmodel::ModelShape quantisable_shape() {
  costmodel::ModelShape shape = divisible_shape();
  shape.name = "quantisable";
  shape.d_model = 8 * 4096;
  return shape;
}

/// An ideal scenario that uses every axis of every method: 10 rounds of 6 steps, 2 fragments of one layer
/// each, and 2 regions with hierarchical_diloco. All of them divide evenly. A method ignores the axes that it
/// does not have.
inline costmodel::Scenario every_axis_scenario(const std::string& method, int sites, int overlap = 0) {
  costmodel::Scenario scenario = ideal_scenario(method, sites, overlap);
  scenario.model = quantisable_shape();
  scenario.strategy.local_steps = 6;
  scenario.strategy.fragments = 2;
  scenario.strategy.overlap_steps = 2;
  scenario.strategy.micro_batches = 2;
  if (method == "hierarchical_diloco" && sites % 2 == 0) scenario.strategy.regions = 2;
  scenario.strategy.global_period = 2;
  const costmodel::Method* found = costmodel::find_method(method);
  if (found != nullptr && found->usual_wire) scenario.strategy.wire = *found->usual_wire;
  return scenario;
}

/// The scenario with an exchange through a store that is no limit itself, `latency_s` away from each site.
/// All of the model is averaged at once.
inline costmodel::Scenario through_store(costmodel::Scenario scenario, bool aggregates,
                                         double latency_s = 0) {
  scenario.strategy.collective = costmodel::Collective::store;
  scenario.strategy.fragments = 1;
  scenario.strategy.overlap_steps = 0;
  scenario.platform.store.emplace();
  scenario.platform.store->aggregates = aggregates;
  scenario.platform.store->latency_s = latency_s;
  return scenario;
}

/// Changes the path of each ordered pair of sites by itself, and the unused ones of a site to itself.
template <class Change>
void change_each_path(platforms::Platform& platform, const Change& change) {
  for (int from = 0; from < platform.size(); ++from) {
    for (int to = 0; to < platform.size(); ++to) platform.change_path(from, to, change);
  }
}

}  // namespace fomoe::tests
