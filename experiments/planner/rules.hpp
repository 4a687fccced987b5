// The rules that screening by the closed form and the decision by simulation have in common.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "costmodel/plan/method.hpp"
#include "experiments/planner/candidate.hpp"

namespace fomoe::planner {

/// What leads to the loss of data-parallel training: the amount × the factor that a scaling law knows. NaN:
/// nobody knows it, and the amount counts as it is.
double to_equal_loss(double amount, double equal_loss_factor);

/// Whether numbers on the wire are coarser than those of the scenario as it is, of which alone quality models
/// know something. 1e-9: bytes per element that were added in another order are the same.
bool coarser_wire(double bytes_per_element, double known_bytes_per_element);

/// Which limit these amounts break, in words; empty: none. `share`: of the amounts that is certain.
std::string broken_amount(const Amounts& amounts, const Limits& limits, double share = 1);
std::string broken_memory(double gpu_memory_bytes, const Limits& limits);
/// A NaN is a perplexity that nobody knows.
std::string broken_perplexity(double perplexity, const Limits& limits);

/// K, or 1 of a method that synchronises in every step.
std::int64_t steps_per_round(const costmodel::Method& method, std::int64_t local_steps);

}  // namespace fomoe::planner
