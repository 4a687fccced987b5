// The sensitivity of an answer, shown: which inputs its wall clock depends on most.
#pragma once
#include <string>

#include "costmodel/formula/sensitivity.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::commands {

struct ShownSensitivity {
  std::string executor;     // that answered: "closed-form" or "simulated"
  double wall_clock_s = 0;  // of the scenario as it is, by that executor
  std::vector<costmodel::Sensitivity> inputs;
};

/// Adds --sensitivity.
void add_sensitivity_option(boost::program_options::options_description& options);

/// By the closed form, which takes well under a millisecond, or as --sensitivity says: simulated, two runs
/// for each input; or none.
ShownSensitivity read_sensitivity(const boost::program_options::variables_map& values,
                                  const costmodel::Scenario& scenario, const Engine& engine);

/// By the closed form.
ShownSensitivity formula_sensitivity(const costmodel::Scenario& scenario);

/// The five inputs that change the wall clock most, and how far the engine is to be believed: `answer_s` is
/// the wall clock that the answer gives. Empty where there is none.
std::string sensitivity_text(const ShownSensitivity& shown, double answer_s);
/// All inputs: a list, the first changes most.
scenario::Json sensitivity_json(const ShownSensitivity& shown);

}  // namespace fomoe::commands
