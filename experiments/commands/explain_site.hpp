// The parts of `fomoe explain` about one site: a step's computation, a GPU's memory, and the cost.
#pragma once
#include <string>
#include <vector>

#include "costmodel/formula/closed_form.hpp"
#include "costmodel/inputs/scenario.hpp"

namespace fomoe::commands {

/// One line of the explanation: the quantity, its formula, the formula with numbers, and the result.
struct Line {
  std::string what, formula, numbers, result;
};
std::string text_of(const Line& line);

/// "1,234,567": the inputs of a formula are shown with all digits.
std::string whole(double value);
std::string seconds(double value);

/// The FLOPs of a token, and the seconds of a step that follow from them or from a profile.
std::string step_lines(const costmodel::Scenario& scenario, const costmodel::Resolved& resolved);
/// The memory of the fullest GPU, and whether it suffices.
std::string memory_lines(const costmodel::Scenario& scenario);
/// The cost of the run that was reported; empty without prices.
std::string cost_lines(const costmodel::Scenario& scenario, const costmodel::RunReport& report);

}  // namespace fomoe::commands
