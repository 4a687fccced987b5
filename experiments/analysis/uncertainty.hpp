// The uncertainty of an answer that follows from the known uncertainty of its inputs, as text and as JSON.
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
  double value = 0, low = 0, high = 0;  // low and high bound the 95 % confidence interval
};

/// A file written by `fomoe calibrate --output FILE.json` and named by --calibration.
struct CalibrationFile {
  std::string path;
  std::vector<CalibratedTerm> terms;  // only terms that the measurements determine
  /// Settings for read_scenario() that replace the scenario's own values, such as
  /// "network_model.latency_factor=1.9".
  [[nodiscard]] std::vector<std::string> settings() const;
  /// Marks these terms as calibrated in a scenario that was read with settings(), so that its reports name
  /// the file.
  [[nodiscard]] costmodel::Scenario stated(costmodel::Scenario scenario) const;
};

/// Adds --calibration.
void add_calibration_option(boost::program_options::options_description& options);
/// Returns no terms if --calibration was not given. Throws FileError.
CalibrationFile read_calibration(const boost::program_options::variables_map& values);

struct ShownUncertainty {
  double answer_s = 0;
  std::vector<costmodel::Uncertainty> inputs;
};

/// Evaluates the uncertainties that the scenario states, and each calibrated term at both ends of its
/// interval, by `engine`. This takes two runs for each uncertain input. The closed form skips terms that it
/// does not model.
ShownUncertainty find_uncertainty(const boost::program_options::variables_map& values,
                                  const costmodel::Scenario& scenario, const CalibrationFile& calibration,
                                  const Engine& engine, double answer_s);

/// The value of an input with its unit, for people: "0.5 ms"; rates are in bits per second.
std::string input_text(double value, const std::string& unit);
/// One line for each input and one for all inputs together. Empty if no input has a known uncertainty.
std::string uncertainty_text(const ShownUncertainty& shown);
/// {"inputs": […]}, and if there are inputs, "wall_clock_low_s" and "wall_clock_high_s" for all of them
/// together.
scenario::Json uncertainty_json(const ShownUncertainty& shown);

}  // namespace fomoe::commands
