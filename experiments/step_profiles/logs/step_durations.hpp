// Finds the number in the lines of an unknown log that is the time of one step.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace fomoe::step_profiles {

/// Where lines state the time of a step.
struct StepDuration {
  std::string pattern;  // extended regular expression for a whole line, as sed reads it
  int group = 1;        // the group with the number
  bool milliseconds = false;
  std::size_t values = 0;  // how many lines have one
};

/// The number that is most surely the time of one step: one whose unit is per step ("5.00s/it",
/// "500ms/step"), then one with a name of such a time ("step_time", "iter time (s)"), then any other
/// duration. Places in a source file, totals and rates are no such times, nor are numbers that only grow from
/// line to line, which count from the start of the run. Empty if no number is left.
std::optional<StepDuration> step_duration(const std::vector<std::string>& lines);

}  // namespace fomoe::step_profiles
