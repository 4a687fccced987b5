// How sure an answer is, shown: what is known of the spread of its inputs.
#pragma once
#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "costmodel/formula/uncertainty.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::commands {

/// A term of [network_model] that was fitted to measurements, in SI units.
struct CalibratedTerm {
  std::string key;                      // "network_model.latency_factor"
  std::string unit;                     // "s", "Bps", "B" or ""
  double value = 0, low = 0, high = 0;  // 95 %
};

/// What --calibration names: a file that `fomoe calibrate --output FILE.json` wrote.
struct CalibrationFile {
  std::string path;
  std::vector<CalibratedTerm> terms;  // those that the data supported
  /// Settings for read_scenario(), "network_model.latency_factor=1.9", in place of the scenario's own.
  [[nodiscard]] std::vector<std::string> settings() const;
  /// Of a scenario that was read with them: its reports call these terms calibrated, and name the file.
  [[nodiscard]] costmodel::Scenario stated(costmodel::Scenario scenario) const;
};

/// Adds --calibration.
void add_calibration_option(boost::program_options::options_description& options);
/// No terms where it was not asked for. Throws FileError.
CalibrationFile read_calibration(const boost::program_options::variables_map& values);

struct ShownUncertainty {
  double answer_s = 0;
  std::vector<costmodel::Uncertainty> inputs;
};

/// What the scenario says, and each calibrated term at both ends of its interval: by `engine`, two runs a
/// term. The closed form leaves out terms that it does not know.
ShownUncertainty find_uncertainty(const boost::program_options::variables_map& values,
                                  const costmodel::Scenario& scenario, const CalibrationFile& calibration,
                                  const Engine& engine, double answer_s);

/// A value of an input for people: "0.5 ms", a rate in bits.
std::string input_text(double value, const std::string& unit);
/// A line for each input and one for all of them; empty where no input has a spread that is known.
std::string uncertainty_text(const ShownUncertainty& shown);
/// {"inputs": […]}, and where there are any, "wall_clock_low_s" and "wall_clock_high_s" of all together.
scenario::Json uncertainty_json(const ShownUncertainty& shown);

}  // namespace fomoe::commands
