// What `fomoe calibrate` found, and how it says so.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/math/fit.hpp"

namespace fomoe::commands {

struct Observation {
  std::string name;
  costmodel::Scenario scenario;
  double communication_s = 0;  // of the mean round; of an iperf3 report, of the bytes that it carried
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

/// Of these two the reciprocal is fitted, in which times are linear.
bool fitted_as_reciprocal(const std::string& term);

/// To paste into a scenario, or for `fomoe validate --network-model`. Throws UsageError where observations
/// differ in terms that were not fitted: there is then no one model that the fit holds with.
std::string calibration_toml(const Calibration& calibration);
/// A table, why terms are left out, and the TOML.
std::string calibration_for_people(const Calibration& calibration);
/// Schema "fomoe.calibration/1"; SI units: seconds, bytes, bytes per second.
std::string calibration_json(const Calibration& calibration);

}  // namespace fomoe::commands
