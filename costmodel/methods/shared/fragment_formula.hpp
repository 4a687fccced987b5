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
//
// If each site holds a part of the experts, a transfer has a dense part and experts (owners_stage()). In the
// rounds after which experts move, all fragments are sent at once and nothing hides them.
#pragma once
#include "costmodel/methods/shared/expert_owners.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Shares of the layers in the fragments before the last one, on average, and in the last one. The last
/// fragment has the tables.
struct FragmentSizes {
  double others, last;
  double layers_of_others, layers_of_last;  // the same as numbers of layers
};

FragmentSizes fragment_sizes(const Axes& axes, const Fixed& fixed);

/// Adds the stages of fragments that are sent layer by layer, in a share `rounds` of the rounds. `bytes` is
/// the size of an element.
void add_layerwise_stages(PlanSummary& summary, const Axes& axes, const Fixed& fixed, double bytes,
                          double hidden_steps, double rounds);

/// The mean round of plan_of_fragments(). An element has `bytes` bytes, which are the sum over its contents
/// if several contents are averaged.
PlanSummary summary_of_fragments(const Axes& axes, const Fixed& fixed, double bytes);

}  // namespace fomoe::costmodel
