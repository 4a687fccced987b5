#include "costmodel/methods/shared/fragment_formula.hpp"

#include <algorithm>
#include <cmath>

namespace fomoe::costmodel {

namespace {

// Elements of all layers together, with the norms outside the layers.
DenseAndExperts elements_of_layers(const Fixed& fixed) {
  return {fixed.dense_elements - fixed.embedding_elements, fixed.expert_elements};
}

// One transfer of a part of the layers, and of these dense elements beside them.
Stage part_stage(const Axes& axes, const Fixed& fixed, double bytes, const DenseAndExperts& layers,
                 double share, double beside) {
  return owners_stage(axes, fixed, {bytes * (share * layers.dense + beside), bytes * share * layers.experts});
}

}  // namespace

FragmentSizes fragment_sizes(const Axes& axes, const Fixed& fixed) {
  const double count = axes.fragments;
  double last = 1.0 / count;
  if (fixed.fragment_pattern == FragmentPattern::balanced) {
    const DenseAndExperts layers = elements_of_layers(fixed);
    // Of what a site sends. An element of an expert counts as (O_e − 1)/(M − 1), see fragment_parts.cpp.
    const double others = std::max(axes.sites - 1.0, 1.0);
    const double weight = axes.expert_overlap == axes.sites ? 1.0 : ((axes.expert_overlap - 1.0) / others);
    const double in_layers = layers.dense + weight * layers.experts;
    last =
        std::max((in_layers + fixed.embedding_elements) / count - fixed.embedding_elements, 0.0) / in_layers;
  }
  const double is_one = std::max(2.0 - count, 0.0);  // 1 if P = 1
  last = is_one + (1.0 - is_one) * last;
  const double others = (1.0 - last) / std::max(count - 1.0, 1.0);
  return {others, last, fixed.layers * others, fixed.layers * last};
}

void add_layerwise_stages(PlanSummary& summary, const Axes& axes, const Fixed& fixed, double bytes,
                          double hidden_steps, double rounds) {
  const FragmentSizes sizes = fragment_sizes(axes, fixed);
  const DenseAndExperts in_layers = elements_of_layers(fixed);
  const double none = 0.0, one = 1.0;
  // Passes of all layers, as parts of those of a step that include the unembedding.
  const double forward = fixed.passes.first_share * (1 - fixed.head_of_forward),
               backward = fixed.passes.last_share * (1 - fixed.head_of_backward);
  const double others = axes.fragments - 1.0, any_others = std::min(others, one);
  // Strided: l = p and h = p + L − P on average; sequential: l = p·L/P and h = l + L/P − 1.
  const bool sequential = fixed.fragment_pattern == FragmentPattern::sequential;
  const double mean_p = std::max(others - 1.0, none) / 2.0;
  const double stride = sequential ? (fixed.layers / axes.fragments) : one;
  const double span =
      sequential ? (sizes.layers_of_others - 1.0) : ((sizes.layers_of_others - 1.0) * axes.fragments);
  const double apart = stride / fixed.layers, low = mean_p * apart;
  // Parts that take `transfers` calls for this share of the layers and these elements beside; the backward
  // pass has left layer `from`·L before, and the forward pass waits at layer `to`·L.
  struct PartOf {
    double transfers, share, beside, from, to;
    bool of_others, is_part;
  };
  const auto add = [&](double times, const PartOf& part) {
    Stage stage = part_stage(axes, fixed, bytes, in_layers, part.share, part.beside);
    stage.latency_hops *= part.transfers;
    stage.beside.hops *= part.transfers;
    stage.uneven = stage.uneven || (stage.beside.bytes > 0 && part.transfers > 1);
    stage.times_per_round = times * rounds;
    stage.hidden_steps = hidden_steps;
    stage.hidden_forwards = forward * part.to;
    stage.hidden_backwards = backward * part.from;
    stage.hidden_optimizers = part.from;
    stage.hidden_unequally = part.of_others;
    stage.layers_between = part.of_others ? apart : none;
    stage.layers_of_forward = forward;
    stage.layers_of_backward = backward;
    stage.part_of_previous = part.is_part;
    summary.add(stage);
  };
  add(others, {sizes.layers_of_others, sizes.others, none, low + std::max(span, none) / fixed.layers, low,
               true, false});
  add(others, {any_others, sizes.others / std::max(sizes.layers_of_others, one), none, low, low, true, true});

  const double layers = sizes.layers_of_last, any_layers = std::min(layers, one);
  const double low_of_last = others * apart * any_layers;
  const double head = fixed.head_elements, table = fixed.embedding_elements - head;
  const double head_calls = head > 0 ? 1 : 0, table_calls = table > 0 ? 1 : 0;
  const double top = (fixed.layers - 1.0) / fixed.layers * any_layers;
  add(one, {head_calls + layers + table_calls, sizes.last, head + table, head > 0 ? one : top, none, false,
            false});
  summary.stages.back().shown_at_end = true;
  if (head > 0) add(one, {layers + table_calls, sizes.last, table, top, none, false, true});
  add(one,
      {any_layers + table_calls, sizes.last / std::max(layers, one), table, low_of_last, none, false, true});
  if (table > 0) add(one, {one, none, table, none, none, false, true});
}

PlanSummary summary_of_fragments(const Axes& axes, const Fixed& fixed, double bytes) {
  PlanSummary summary = rounds_of(axes, fixed, axes.local_steps);
  const DenseAndExperts sent = sent_to_owners(axes, fixed, bytes);
  summary.sent.dense = sent.dense;
  summary.sent.expert_sync = sent.experts;
  const double hidden_steps = std::min(axes.overlap_steps, axes.local_steps / axes.fragments);
  // With τ ≥ K/P the next fragment is sent before the site waits for this one.
  const double one = 1;
  const bool overlapping = axes.overlap_steps * axes.fragments / axes.local_steps >= 1;
  // The last fragment is applied in the next round if the site does not wait for it at once. Nothing applies
  // that of the last round.
  const double late = fixed.layerwise ? one : std::min(axes.overlap_steps, one);
  summary.outer_steps_per_round = 1.0 - late / (axes.fragments * summary.rounds);
  // The shares of the rounds at whose end experts move, and of the others. All fragments are sent at the end
  // of the former.
  const double moving =
      axes.expert_overlap < axes.sites ? migrations_per_round(axes, fixed, summary.rounds) : 0.0;
  const double in_turn = one - moving;
  summary.approximate = overlapping || leaves_remainder(fixed.layers, axes.fragments) ||
                        leaves_remainder(axes.local_steps, axes.fragments);
  if (axes.fragments > 1) {
    // Balanced fragments have about equal bytes, in whole layers. Where some sites have one expert of a layer
    // more than others, which sites these are differs between fragments.
    if (fixed.fragment_pattern == FragmentPattern::balanced ||
        (axes.expert_overlap > 1 && leaves_remainder(fixed.experts * axes.expert_overlap, axes.sites)))
      summary.approximate = true;
  }
  if (fixed.layerwise) {
    add_layerwise_stages(summary, axes, fixed, bytes, hidden_steps, in_turn);
    if (moving > 0) {
      Axes whole = axes;
      whole.fragments = one;
      const std::size_t others = summary.stages.size();
      add_layerwise_stages(summary, whole, fixed, bytes, 0.0, moving);
      for (std::size_t i = others; i < summary.stages.size(); ++i)  // the last round of a run moves nothing
        summary.stages[i].shown_at_end = false;
      // A stage takes the fragments before the last one as repetitions in every round.
      if (axes.fragments > 1) summary.approximate = true;
    }
    return summary;
  }
  const FragmentSizes sizes = fragment_sizes(axes, fixed);
  // The first fragment has half of the norms outside the layers; the last one has the other half.
  const double edge = (fixed.dense_elements - fixed.embedding_elements - fixed.layered_elements) / 2;
  const DenseAndExperts in_layers = {fixed.layered_elements, fixed.expert_elements};
  const auto add = [&](double share, double beside, double times) {
    Stage stage = part_stage(axes, fixed, bytes, in_layers, share, beside);
    stage.times_per_round = times * in_turn;
    stage.hidden_steps = hidden_steps;
    summary.add(stage);
  };
  const double none = 0.0;
  const double has_first = std::min(axes.fragments - 1.0, 1.0);  // 0 if P = 1
  const double has_middle = std::max(axes.fragments - 2.0, none);
  if (!fixed.secure_aggregation) {  // which requires P = 1
    add(sizes.others, edge, has_first);
    add(sizes.others, none, has_middle);
  }
  add(sizes.last, fixed.embedding_elements + edge * (2.0 - has_first), 1.0);
  summary.stages.back().shown_at_end = true;
  if (moving > 0) {
    Stage whole = part_stage(axes, fixed, bytes, in_layers, one, fixed.embedding_elements + 2.0 * edge);
    whole.times_per_round = moving;
    summary.add(whole);
  }
  return summary;
}

}  // namespace fomoe::costmodel
