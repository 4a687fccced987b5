// A plan reduced to what the closed form needs: sums and counts of the mean round, as formulas of the numeric
// axes.
//
// The formulas are written once, as templates over V: `double` for one scenario, `Block` for a sweep, where
// each lane is a configuration. Branches on an axis must therefore be arithmetic (min, max, products with 0
// or 1).
#pragma once
#include <array>
#include <cstdint>

#include "costmodel/lanes.hpp"
#include "costmodel/scenario.hpp"

namespace fomoe::costmodel {

/// What a sweep varies.
template <class V>
struct Axes {
  V sites;             // M
  V local_steps;       // K
  V expert_overlap;    // O_e; M for methods that keep full replicas
  V reshuffle_rounds;  // T
  V overlap_steps;
  V fragments;
  V tokens;
  V global_batch_sequences;
  V bytes_per_element;  // on the wire
};

/// What it does not.
struct Fixed {
  double dense_elements = 0;   // with skip-token the whole router is dense
  double expert_elements = 0;  // of all experts of all layers, with their router columns unless skip-token
  double embedding_elements = 0;
  double sequence_length = 0;
  double d_model = 0, layers = 0, moe_layers = 0, experts = 0, active_experts = 0;
  Collective collective = Collective::ring;
  PlacementKind placement = PlacementKind::fixed;
  double tied_elements = 0;         // of the embedding where it is also the unembedding
  double expert_parameters = 0;     // of all experts of all layers, without router columns
  double expert_compute_share = 0;  // of a forward or backward pass
  double max_sites_per_token = 0;   // 0: as many as its experts are on
  double sent_rows = 1;             // activations sent ÷ tokens · k, mean over sites and layers
  double busiest_rows = 1;          // the same of the busiest site of each layer, mean over layers
  double micro_batches = 1;         // n, of a pipeline
  double module_choices = 1;        // modules that each level offers to a path
};

/// Bytes that a site sends, mean over sites and rounds.
template <class V>
struct SentBytes {
  V dense = constant<V>(0);
  V expert_sync = constant<V>(0);
  V migration = constant<V>(0);
  V activations = constant<V>(0);
  [[nodiscard]] V total() const { return dense + expert_sync + migration + activations; }
};

/// Transfers that run at the same time; stages follow each other.
template <class V>
struct Stage {
  V latency_hops = constant<V>(0);     // one-way latencies in sequence, of the longest transfer in the stage
  V bytes = constant<V>(0);            // through the busiest port, each way; equal sites
  V pair_bytes = constant<V>(0);       // the most that one ordered pair of sites exchanges
  V times_per_round = constant<V>(1);  // 1/T for what happens every T-th round, n for what repeats in it
  V hidden_steps = constant<V>(0);     // local steps that it may hide behind
  V hidden_forwards = constant<V>(0);  // forward passes, and parts of one, that it may hide behind
  V hidden_backwards = constant<V>(0);
};

template <class V>
struct Summary {
  V steps = constant<V>(0);  // optimiser steps
  V rounds = constant<V>(0);
  V compute_factor = constant<V>(1);    // on forward and backward; mean over sites
  V idle_factor = constant<V>(0);       // forwards and backwards that a site waits for others: a bubble
  V optimizer_factor = constant<V>(1);  // the share of the parameters that a site updates
  V outer_steps_per_round = constant<V>(0);
  std::array<Stage<V>, 4> stages;
  int stage_count = 0;
  SentBytes<V> sent;

  void add(Stage<V> stage) { stages[static_cast<std::size_t>(stage_count++)] = std::move(stage); }
};
using PlanSummary = Summary<double>;

Axes<double> axes_of(const Scenario& scenario);
Fixed fixed_of(const Scenario& scenario);

/// The mean round of the scenario's plan, by its method's formula.
PlanSummary summarise(const Scenario& scenario);

// --- formulas that methods share ------------------------------------------------------------------------

/// Bytes that each of n nodes sends to all-reduce one byte: 2(n−1)/n, for ring and direct alike.
template <class V>
V all_reduce_factor(const V& nodes) {
  return 2.0 * (nodes - 1.0) / nodes;
}
/// One-way latencies in sequence: ring 2(n−1), direct 2; none where there is one node.
template <class V>
V all_reduce_hops(Collective collective, const V& nodes) {
  if (collective == Collective::ring) return 2.0 * (nodes - 1.0);
  return 2.0 * min_of(V(nodes - 1.0), constant<V>(1));
}
/// The part of all_reduce_factor that goes to one peer: ring, all of it; direct, 2/n.
template <class V>
V all_reduce_pair_factor(Collective collective, const V& nodes) {
  if (collective == Collective::ring) return all_reduce_factor(nodes);
  return 2.0 / nodes * min_of(V(nodes - 1.0), constant<V>(1));
}

/// ⌈tokens ÷ global batch⌉ steps in rounds of `steps_per_round`, the last one perhaps short.
template <class V>
Summary<V> rounds_of(const Axes<V>& axes, const Fixed& fixed, const V& steps_per_round) {
  Summary<V> summary;
  summary.steps = ceil_of(V(axes.tokens / (axes.global_batch_sequences * fixed.sequence_length)));
  summary.rounds = ceil_of(V(summary.steps / steps_per_round));
  return summary;
}

/// All sites all-reduce `dense_elements` and all experts, `contents` times over, once a round.
template <class V>
Summary<V> full_model_summary(const Axes<V>& axes, const Fixed& fixed, const V& steps_per_round,
                              double contents) {
  Summary<V> summary = rounds_of(axes, fixed, steps_per_round);
  const V factor = contents * all_reduce_factor(axes.sites) * axes.bytes_per_element;
  summary.sent.dense = factor * fixed.dense_elements;
  summary.sent.expert_sync = factor * fixed.expert_elements;
  Stage<V> stage;
  stage.latency_hops = all_reduce_hops(fixed.collective, axes.sites);
  stage.bytes = summary.sent.total();
  stage.pair_bytes = contents * all_reduce_pair_factor(fixed.collective, axes.sites) *
                     axes.bytes_per_element * (fixed.dense_elements + fixed.expert_elements);
  summary.add(stage);
  return summary;
}

}  // namespace fomoe::costmodel
