// Published training speeds that are closest to a scenario's model and device.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/files/published_steps.hpp"

namespace fomoe::commands {

/// All published rows in ascending order of their distance to the scenario:
///   |ln(active parameters)| + ½·|ln(total ÷ active parameters)| + ½·|ln(sequence length)|
///   + ½ if the device is another one
/// with the logarithms of ratios, as far as a row states them. A row that does not state its active
/// parameters comes last.
std::vector<const scenario::PublishedSteps*> by_distance(const costmodel::Scenario& scenario,
                                                         const std::string& accelerator);

/// The lowest and highest MFU of the (at most five) closest published runs that are comparable: within a
/// distance of 1.5, and in the scenario's number format, as far as its peak tells it.
struct ComparableMfu {
  double low = 0, high = 0;
  std::size_t runs = 0;
  std::string device;  // the scenario's accelerator, if its peak is that of a known one
  std::string ids;     // of the runs: "a, b"
};
/// Nothing if no published run is comparable.
std::optional<ComparableMfu> comparable_mfu(const costmodel::Scenario& scenario);

/// Two lines about the MFU of the five closest published runs, for a scenario whose step time was not
/// measured. Empty if it was.
std::string comparable_text(const costmodel::Scenario& scenario);

/// The table of `fomoe list profiles`. The rows closest to `scenario` come first if it is given.
std::string published_table(const costmodel::Scenario* scenario);

}  // namespace fomoe::commands
