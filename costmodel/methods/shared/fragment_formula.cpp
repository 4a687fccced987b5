#include "costmodel/methods/shared/fragment_formula.hpp"

#include <algorithm>
#include <cmath>

namespace fomoe::costmodel {

FragmentSizes fragment_sizes(const Axes& axes, const Fixed& fixed) {
  const double in_layers = fixed.dense_elements - fixed.embedding_elements + fixed.expert_elements;
  const double count = axes.fragments;
  double last = in_layers / count;
  if (fixed.fragment_pattern == FragmentPattern::balanced)
    last = std::max((in_layers + fixed.embedding_elements) / count - fixed.embedding_elements, 0.0);
  const double is_one = std::max(2.0 - count, 0.0);  // 1 if P = 1
  last = is_one * in_layers + (1.0 - is_one) * last;
  const double others = (in_layers - last) / std::max(count - 1.0, 1.0);
  return {others, last, fixed.layers * others / in_layers, fixed.layers * last / in_layers};
}

void add_layerwise_stages(PlanSummary& summary, const Axes& axes, const Fixed& fixed, double bytes,
                          double hidden_steps) {
  const FragmentSizes sizes = fragment_sizes(axes, fixed);
  const double none = 0.0, one = 1.0, pass = share_of_pass(axes, fixed);
  const double others = axes.fragments - 1.0, any_others = std::min(others, one);
  // Strided: l = p and h = p + L − P on average; sequential: l = p·L/P and h = l + L/P − 1.
  const bool sequential = fixed.fragment_pattern == FragmentPattern::sequential;
  const double mean_p = std::max(others - 1.0, none) / 2.0;
  const double stride = sequential ? (fixed.layers / axes.fragments) : one;
  const double span =
      sequential ? (sizes.layers_of_others - 1.0) : ((sizes.layers_of_others - 1.0) * axes.fragments);
  const double apart = stride / fixed.layers, low = mean_p * apart;
  // Parts that take `transfers` calls for `elements`; the backward pass has left layer `from`·L before, and
  // the forward pass waits at layer `to`·L.
  const auto add = [&](double times, double transfers, double elements, double from, double to,
                       bool of_others, bool is_part) {
    Stage stage = averaging_stage(axes, fixed, bytes * elements);
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
  add(others, sizes.layers_of_others, sizes.others, low + std::max(span, none) / fixed.layers, low, true,
      false);
  add(others, any_others, sizes.others / std::max(sizes.layers_of_others, one), low, low, true, true);

  const double layers = sizes.layers_of_last, any_layers = std::min(layers, one);
  const double low_of_last = others * apart * any_layers;
  const double head = fixed.head_elements, table = fixed.embedding_elements - head;
  const double head_calls = head > 0 ? 1 : 0, table_calls = table > 0 ? 1 : 0;
  const double top = (fixed.layers - 1.0) / fixed.layers * any_layers;
  add(one, head_calls + layers + table_calls, head + sizes.last + table, head > 0 ? one : top, none, false,
      false);
  summary.stages.back().shown_at_end = true;
  if (head > 0) add(one, layers + table_calls, sizes.last + table, top, none, false, true);
  add(one, any_layers + table_calls, sizes.last / std::max(layers, one) + table, low_of_last, none, false,
      true);
  if (table > 0) add(one, one, table, none, none, false, true);
}

PlanSummary summary_of_fragments(const Axes& axes, const Fixed& fixed, double bytes) {
  PlanSummary summary = full_model_summary(axes, fixed, axes.local_steps, bytes);
  summary.stages.clear();
  const double hidden_steps = std::min(axes.overlap_steps, axes.local_steps / axes.fragments);
  // With τ ≥ K/P the next fragment is sent before the site waits for this one.
  const double one = 1;
  const bool overlapping = axes.overlap_steps * axes.fragments / axes.local_steps >= 1;
  // The last fragment is applied in the next round if the site does not wait for it at once. Nothing applies
  // that of the last round.
  const double late = fixed.layerwise ? one : std::min(axes.overlap_steps, one);
  summary.outer_steps_per_round = 1.0 - late / (axes.fragments * summary.rounds);
  summary.approximate = overlapping || leaves_remainder(fixed.layers, axes.fragments) ||
                        leaves_remainder(axes.local_steps, axes.fragments);
  // Balanced fragments have about equal bytes, in whole layers.
  if (fixed.fragment_pattern == FragmentPattern::balanced && axes.fragments > 1) summary.approximate = true;
  if (fixed.layerwise) {
    add_layerwise_stages(summary, axes, fixed, bytes, hidden_steps);
    return summary;
  }
  const FragmentSizes sizes = fragment_sizes(axes, fixed);
  const auto add = [&](double elements, double times) {
    Stage stage = averaging_stage(axes, fixed, bytes * elements);
    stage.times_per_round = times;
    stage.hidden_steps = hidden_steps;
    summary.add(stage);
  };
  // The first fragment has half of the norms outside the layers; the last one has the other half.
  const double edge = (fixed.dense_elements - fixed.embedding_elements - fixed.layered_elements) / 2;
  const double in_layers = fixed.layered_elements + 2 * edge + fixed.expert_elements;
  const double per_edge = edge, none = 0.0;
  const double has_first = std::min(axes.fragments - 1.0, 1.0);  // 0 if P = 1
  const double has_middle = std::max(axes.fragments - 2.0, none);
  const double inner = (in_layers - 2 * edge) / in_layers;  // without these norms
  if (!fixed.secure_aggregation) {                          // which requires P = 1
    add(sizes.others * inner + per_edge, has_first);
    add(sizes.others * inner, has_middle);
  }
  add(sizes.last * inner + fixed.embedding_elements + edge * (2.0 - has_first), 1.0);
  summary.stages.back().shown_at_end = true;
  return summary;
}

}  // namespace fomoe::costmodel
