// Chooses the rows of the answer from the simulated finalists.
#pragma once
#include "experiments/planner/answer.hpp"

namespace fomoe::planner {

/// Values that differ by less than this share are ties: finalists are simulated to this precision, and what
/// the compute times are off by is the same for all of them.
inline constexpr double kTie = 0.01;

/// Fills in answer.chosen, answer.riskier and answer.methods. A finalist that another one equals or beats in
/// value, in the other amount (cost or time) and in risk is left out. Ties go to less risk, then to the lower
/// product of both amounts.
void decide(Answer& answer, const AnswerOptions& options);

}  // namespace fomoe::planner
