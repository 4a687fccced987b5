// The formulas of fragment_rounds.hpp. P is the number of fragments, L that of layers, K that of local steps,
// t_p the transfer time of fragment p, and t_step, f, b and u are the times of a step, of its forward and
// backward pass and of its optimiser. c is the share of a site's batch in one pass.
//
// Whole fragments:
//   round = K·t_step + Σ_p max(0, t_p − min(τ, K/P)·t_step)
// More than K/P steps cannot hide a fragment, because the next fragment is then already in flight.
//
// Layer by layer, let h be the highest layer of a fragment, l its lowest one, and t_i the transfer time of
// its i-th part, of m. Part i can start when the backward pass has left its layer, l_i, and all of the
// fragment must have arrived when the forward pass reaches layer l:
//   exposed = max over i of max(0, t_i + … + t_m − (l_i/L·(c·b + u) + min(τ, K/P)·t_step + c·l/L·f))
// Since the layers' parts have equal size, only the first and the last one of them can decide. An untied
// unembedding, at l_i = L, and the embedding, at l_i = l = 0, are further parts of the last fragment.
// The fragments before the last one have their mean size; h and l grow from each one to the next.
#pragma once
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Elements of the fragments before the last one, on average, and of the last one. The last fragment has the
/// tables.
template <class V>
struct FragmentSizes {
  V others, last;  // layers of a fragment, in elements; the first layer and the last one include norms
  V layers_of_others, layers_of_last;
};

template <class V>
FragmentSizes<V> fragment_sizes(const Axes<V>& axes, const Fixed& fixed) {
  const double in_layers = fixed.dense_elements - fixed.embedding_elements + fixed.expert_elements;
  const V count = axes.fragments;
  V last = in_layers / count;
  if (fixed.fragment_pattern == FragmentPattern::balanced)
    last =
        max_of(V((in_layers + fixed.embedding_elements) / count - fixed.embedding_elements), constant<V>(0));
  const V is_one = max_of(V(2.0 - count), constant<V>(0));  // 1 if P = 1
  last = is_one * in_layers + (1.0 - is_one) * last;
  const V others = (in_layers - last) / max_of(V(count - 1.0), constant<V>(1));
  return {others, last, V(fixed.layers * others / in_layers), V(fixed.layers * last / in_layers)};
}

/// Adds the stages of fragments that are sent layer by layer. `bytes` is the size of an element.
template <class V>
void add_layerwise_stages(Summary<V>& summary, const Axes<V>& axes, const Fixed& fixed, const V& bytes,
                          const V& hidden_steps) {
  const FragmentSizes<V> sizes = fragment_sizes(axes, fixed);
  const V none = constant<V>(0), one = constant<V>(1), pass = share_of_pass(axes, fixed);
  const V others = axes.fragments - 1.0, any_others = min_of(others, one);
  // Strided: l = p and h = p + L − P on average; sequential: l = p·L/P and h = l + L/P − 1.
  const bool sequential = fixed.fragment_pattern == FragmentPattern::sequential;
  const V mean_p = max_of(V(others - 1.0), none) / 2.0;
  const V stride = sequential ? V(fixed.layers / axes.fragments) : one;
  const V span =
      sequential ? V(sizes.layers_of_others - 1.0) : V((sizes.layers_of_others - 1.0) * axes.fragments);
  const V apart = stride / fixed.layers, low = mean_p * apart;
  // Parts that take `transfers` calls for `elements`; the backward pass has left layer `from`·L before, and
  // the forward pass waits at layer `to`·L.
  const auto add = [&](const V& times, const V& transfers, const V& elements, const V& from, const V& to,
                       bool of_others, bool is_part) {
    Stage<V> stage = averaging_stage(axes, fixed, V(bytes * elements));
    stage.latency_hops *= transfers;
    stage.times_per_round = times;
    stage.hidden_steps = hidden_steps;
    stage.hidden_forwards = pass * to;
    stage.hidden_backwards = pass * from;
    stage.hidden_optimizers = from;
    stage.hidden_unequally = of_others;
    stage.layers_between = of_others ? apart : none;
    stage.share_of_pass = pass;
    stage.part_of_previous = is_part;
    summary.add(stage);
  };
  add(others, sizes.layers_of_others, sizes.others, V(low + max_of(span, none) / fixed.layers), low, true,
      false);
  add(others, any_others, V(sizes.others / max_of(sizes.layers_of_others, one)), low, low, true, true);

  const V layers = sizes.layers_of_last, any_layers = min_of(layers, one);
  const V low_of_last = others * apart * any_layers;
  const double head = fixed.head_elements, table = fixed.embedding_elements - head;
  const double head_calls = head > 0 ? 1 : 0, table_calls = table > 0 ? 1 : 0;
  const V top = V((fixed.layers - 1.0) / fixed.layers * any_layers);
  add(one, V(head_calls + layers + table_calls), V(head + sizes.last + table), head > 0 ? one : top, none,
      false, false);
  summary.stages[static_cast<std::size_t>(summary.stage_count - 1)].shown_at_end = true;
  if (head > 0) add(one, V(layers + table_calls), V(sizes.last + table), top, none, false, true);
  add(one, V(any_layers + table_calls), V(sizes.last / max_of(layers, one) + table), low_of_last, none, false,
      true);
  if (table > 0) add(one, one, constant<V>(table), none, none, false, true);
}

/// The mean round of plan_of_fragments(). An element has `bytes` bytes, which are the sum over its contents
/// if several contents are averaged.
template <class V>
Summary<V> summary_of_fragments(const Axes<V>& axes, const Fixed& fixed, const V& bytes) {
  Summary<V> summary = full_model_summary(axes, fixed, axes.local_steps, bytes);
  summary.stage_count = 0;
  const V hidden_steps = min_of(axes.overlap_steps, V(axes.local_steps / axes.fragments));
  // With τ ≥ K/P the next fragment is sent before the site waits for this one.
  const V one = constant<V>(1);
  const V overlapping = min_of(floor_of(V(axes.overlap_steps * axes.fragments / axes.local_steps)), one);
  // The last fragment is applied in the next round if the site does not wait for it at once. Nothing applies
  // that of the last round.
  const V late = fixed.layerwise ? one : min_of(axes.overlap_steps, one);
  summary.outer_steps_per_round = 1.0 - late / (axes.fragments * summary.rounds);
  summary.approximate = max_of(max_of(leaves_remainder(constant<V>(fixed.layers), axes.fragments),
                                      leaves_remainder(axes.local_steps, axes.fragments)),
                               overlapping);
  // Balanced fragments have about equal bytes, in whole layers.
  if (fixed.fragment_pattern == FragmentPattern::balanced)
    summary.approximate = max_of(summary.approximate, min_of(V(axes.fragments - 1.0), one));
  if (fixed.layerwise) {
    add_layerwise_stages(summary, axes, fixed, bytes, hidden_steps);
    return summary;
  }
  const FragmentSizes<V> sizes = fragment_sizes(axes, fixed);
  const auto add = [&](const V& elements, const V& times) {
    Stage<V> stage = averaging_stage(axes, fixed, V(bytes * elements));
    stage.times_per_round = times;
    stage.hidden_steps = hidden_steps;
    summary.add(stage);
  };
  // The first fragment has half of the norms outside the layers; the last one has the other half.
  const double edge = (fixed.dense_elements - fixed.embedding_elements - fixed.layered_elements) / 2;
  const double in_layers = fixed.layered_elements + 2 * edge + fixed.expert_elements;
  const V per_edge = constant<V>(edge), none = constant<V>(0);
  const V has_first = min_of(V(axes.fragments - 1.0), constant<V>(1));  // 0 if P = 1
  const V has_middle = max_of(V(axes.fragments - 2.0), none);
  const double inner = (in_layers - 2 * edge) / in_layers;  // without these norms
  if (!fixed.secure_aggregation) {                          // which requires P = 1
    add(V(sizes.others * inner + per_edge), has_first);
    add(V(sizes.others * inner), has_middle);
  }
  add(V(sizes.last * inner + fixed.embedding_elements + edge * (2.0 - has_first)), constant<V>(1));
  summary.stages[static_cast<std::size_t>(summary.stage_count - 1)].shown_at_end = true;
  return summary;
}

}  // namespace fomoe::costmodel
