// Sensitivity of the wall clock to each numeric input: one input at a time is changed by −10 % and +10 %.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

inline constexpr double kSensitivityStep = 0.1;

struct Sensitivity {
  std::string input;      // "link rates", "strategy.local_steps"
  double less_s = 0;      // wall clock with the input 10 % less
  double more_s = 0;      // wall clock with the input 10 % larger
  double less_share = 0;  // factor applied to the input; integers can change by more than 10 %
  double more_share = 0;
  /// The larger of the two changes of the wall clock ÷ the unchanged wall clock; the second one if both are
  /// equal.
  double change = 0;
};

struct Sensitivities {
  double unchanged_s = 0;           // wall clock of the scenario itself
  std::vector<Sensitivity> inputs;  // in descending order of change
};

/// Computes the wall clocks of independent scenarios, in seconds; NaN for a scenario that it refuses.
using WallClocks = std::function<std::vector<double>(const std::vector<Scenario>&)>;

/// Sensitivities to all inputs that the scenario has. Rates and latencies change at all links together.
/// Inputs whose changes are illegal or refused are omitted.
Sensitivities sensitivity(const Scenario& scenario, const WallClocks& wall_clocks_s);

/// Sensitivities by the closed form.
Sensitivities sensitivity(const Scenario& scenario);

}  // namespace fomoe::costmodel
