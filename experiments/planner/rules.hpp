// Rules that both the screening by the closed form and the decision by simulation use.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "costmodel/plan/method.hpp"
#include "experiments/planner/candidate.hpp"

namespace fomoe::planner {

/// The amount that reaches the loss of data-parallel training: amount × equal_loss_factor. If the factor is
/// NaN (unknown), the amount is returned unchanged.
double to_equal_loss(double amount, double equal_loss_factor);

/// Whether elements on the wire are coarser than in the unchanged scenario. Quality models hold only for the
/// number format of the unchanged scenario. A tolerance of 1e-9 covers rounding of sums of bytes per element.
bool coarser_wire(double bytes_per_element, double known_bytes_per_element);

/// Names the limit that the amounts break; empty if they break none. `share` is the share of the amounts that
/// is certain.
std::string broken_amount(const Amounts& amounts, const Limits& limits, double share = 1);
std::string broken_memory(double gpu_memory_bytes, const Limits& limits);
/// A NaN perplexity means unknown.
std::string broken_perplexity(double perplexity, const Limits& limits);

/// Returns K, or 1 for a method that synchronises in every step.
std::int64_t steps_per_round(const costmodel::Method& method, std::int64_t local_steps);

}  // namespace fomoe::planner
