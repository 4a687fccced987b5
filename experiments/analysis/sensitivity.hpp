// The sensitivity of an answer: which inputs change its wall clock most, as text and as JSON.
#pragma once
#include <string>

#include "costmodel/formula/sensitivity.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::commands {

struct ShownSensitivity {
  std::string executor;     // the engine that computed it: "closed-form" or "simulated"
  double wall_clock_s = 0;  // seconds for the unchanged scenario, by that engine
  std::vector<costmodel::Sensitivity> inputs;
};

/// Adds --sensitivity.
void add_sensitivity_option(boost::program_options::options_description& options);

/// Computes the sensitivity as --sensitivity asks: by the closed form, by simulation (two runs for each
/// input), or not at all. The default is the closed form if it computed the answer, and otherwise the engine
/// of brief_engine().
ShownSensitivity read_sensitivity(const boost::program_options::variables_map& values,
                                  const costmodel::Scenario& scenario, const Engine& engine);

/// The closed form, or a short simulation if the closed form approximates.
Engine brief_engine(const costmodel::Scenario& scenario);
/// Sensitivities with brief_engine().
ShownSensitivity brief_sensitivity(const costmodel::Scenario& scenario);

/// The five inputs that change the wall clock most, and a note on how far the closed form is from `answer_s`,
/// the wall clock of the answer in seconds. Empty if no sensitivity was computed.
std::string sensitivity_text(const ShownSensitivity& shown, double answer_s);
/// All inputs as a list, sorted by decreasing effect.
scenario::Json sensitivity_json(const ShownSensitivity& shown);

}  // namespace fomoe::commands
