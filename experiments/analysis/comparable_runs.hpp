// Published training speeds that are closest to a scenario's model and device.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/files/published_steps.hpp"

namespace fomoe::commands {

/// All published rows in ascending order of their distance to the scenario:
///   |ln(active parameters)| + ½·|ln(total ÷ active parameters)| + ½ if the device is another one
/// with the logarithms of ratios. A row that does not state its active parameters comes last.
std::vector<const scenario::PublishedSteps*> by_distance(const costmodel::Scenario& scenario,
                                                         const std::string& accelerator);

/// Two lines about the MFU of the five closest published runs, for a scenario whose step time was not
/// measured. Empty if it was.
std::string comparable_text(const costmodel::Scenario& scenario);

/// The table of `fomoe list profiles`. The rows closest to `scenario` come first if it is given.
std::string published_table(const costmodel::Scenario* scenario);

}  // namespace fomoe::commands
