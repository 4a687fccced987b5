// Rules that both the screening by the closed form and the decision by simulation use.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "costmodel/plan/method.hpp"
#include "experiments/planner/candidate.hpp"

namespace fomoe::planner {

/// The amounts of a run with `factor` times the tokens, which reaches the loss of data-parallel training if
/// that is its factor. If the factor is NaN (unknown), the amounts are returned unchanged.
Amounts to_equal_loss(const Amounts& amounts, double factor);
/// The factor with which the run needs that amount; 0 if the amount does not grow with the tokens.
double factor_of_amount(const Amounts& amounts, Measure measure, double wanted);

/// Whether an element on the wire has fewer bytes than in the unchanged scenario. Quality models hold only
/// for the number format of the unchanged scenario. A tolerance of 1e-9 covers rounding of sums of bytes per
/// element.
bool coarser_wire(double bytes_per_element, double known_bytes_per_element);

/// Names the first limit that the amounts break; empty if the amounts break no limit. Each amount is
/// multiplied by `share` before the comparison. A caller passes a share below 1 if only that part of the
/// amounts is certain.
std::string broken_amount(const Amounts& amounts, const Limits& limits, double share = 1);
std::string broken_memory(double needed_bytes, double available_bytes, const Limits& limits);
/// A NaN perplexity means unknown.
std::string broken_perplexity(double perplexity, const Limits& limits);

/// Returns the number of optimiser steps between two synchronisations: `local_steps`, or 1 for a method that
/// synchronises in every step.
std::int64_t steps_per_round(const costmodel::Method& method, std::int64_t local_steps);

}  // namespace fomoe::planner
