// What of a scenario decides the memory and the internal traffic of a site, as numbers: the part that is the
// same in every lane of a sweep, and the part that is not.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/math/lanes.hpp"

namespace fomoe::costmodel {

struct SiteModel {
  SiteGpus gpus;  // all but their count
  double layers = 0, moe_layers = 0, d_model = 0, sequence_length = 0;
  double embedding_elements = 0;  // both tables where the unembedding is one of its own
  double table_elements = 0;      // V·d
  double experts = 0, active_experts = 0;
  bool skip_token = false;
  double micro_batch_sequences = 0;  // stated, or of the profile's steps; 0: neither
  double outer_bytes_per_parameter = 0;
  // What the forward pass keeps: see activations.hpp.
  double dense_layer_bytes_per_token = 0, moe_layer_bytes_per_token = 0;
  double bytes_per_token_and_expert = 0;
  double outer_norm_bytes_per_token = 0, logit_bytes_per_token = 0;
};
SiteModel site_model(const Scenario& scenario);

template <class V>
struct SiteLoad {
  V gpus;
  V dense, experts;    // parameters of one replica; without skip-token the router is with its experts
  V executed_experts;  // that compute for a token in one layer, mean over tokens
  V sequences;         // of the site, in one optimiser step
  V kept_share = constant<V>(1);      // of these parameters; 1/M where sites shard them among each other
  V gathered_share = constant<V>(0);  // of weights and gradients, held beside these while a step runs
};

/// min(k, N_le), or k·N_le/N_e with skip-token.
template <class V>
V executed_experts(const SiteModel& model, const V& local_experts) {
  if (model.skip_token) return model.active_experts * local_experts / max_of(model.experts, 1.0);
  return min_of(constant<V>(model.active_experts), local_experts);
}

SiteLoad<double> site_load(const Scenario& scenario, double sequences);

/// Refuses degrees that do not fit the model; throws InputError.
void check_site_gpus(const Scenario& scenario);

/// Sequences of one replica's forward and backward pass; 0 where neither scenario nor profile says it.
std::int64_t micro_batch_sequences(const Scenario& scenario);
/// Of all replicas of a site together; 0 where nobody gave compute.micro_batch_sequences.
double sequences_per_pass(const Scenario& scenario);

}  // namespace fomoe::costmodel
