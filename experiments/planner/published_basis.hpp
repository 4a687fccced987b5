// What published runs say of finalists, for plans that rank by the amount to equal loss.
#pragma once
#include <optional>

#include "experiments/planner/answer.hpp"

namespace fomoe::planner {

/// What the rows say of the finalist's loss against data-parallel training; empty if its scenario does not
/// ask them.
std::optional<costmodel::PublishedLoss> published_loss(const costmodel::Scenario& scenario);

/// The probability that `first` reaches the loss of data-parallel training with less of the amount than
/// `other`. The level of the loss is that of `first` at the centre; the difference to `other` has Student's
/// distribution. The mean of both laws of tokens. Empty if the rows say nothing of the difference.
std::optional<double> probability_less(const Finalist& first, const Finalist& other, Measure measure);

}  // namespace fomoe::planner
