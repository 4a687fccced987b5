// The result of `fomoe calibrate`, and its output as TOML, as JSON and for people.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/math/fit.hpp"

namespace fomoe::commands {

struct Observation {
  std::string name;
  costmodel::Scenario scenario;
  /// Measured seconds: communication of the mean round, or duration of an iperf3 transfer.
  double communication_s = 0;
};

struct Data {
  std::vector<Observation> observations;
  std::vector<std::string> run_ids;
};

struct Calibration {
  Data data;
  costmodel::Fit fit;
  std::vector<costmodel::FittedTerm> terms;
};

/// Returns whether the fit uses the reciprocal of the term. The fit does so for terms in whose reciprocal the
/// times are linear.
bool fitted_as_reciprocal(const std::string& term);

/// Throws std::runtime_error with this advice if the fit does not describe the measurements: its largest
/// error is above 50 %.
void refuse_bad_fit(const Calibration& calibration, const std::string& advice);

/// The fitted [network_model] as TOML, to paste into a scenario or to pass to `fomoe validate
/// --network-model`. Throws UsageError if the observations differ in terms that were not fitted, because the
/// fit is then not valid for one network model.
std::string calibration_toml(const Calibration& calibration);
/// Text with a table of the fitted terms, the reason why each other term was not fitted, and the TOML.
std::string calibration_for_people(const Calibration& calibration);
/// Schema "fomoe.calibration/1"; SI units: seconds, bytes, bytes per second.
std::string calibration_json(const Calibration& calibration);

}  // namespace fomoe::commands
