// Intermediate results of the closed form.
#pragma once
#include <string>
#include <vector>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/round_times.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

struct ClosedFormParts {
  PlanSummary summary;         // summary of the mean round
  LinkSets links;              // of the effective platform
  std::string port;            // slowest port: "uplink of paris"
  int slowest_site = 0;        // index of the site whose steps take longest
  ComputeTimes slowest_times;  // times of one step of this site
  RoundTimes round;
  bool represents_sites = true;  // see represents_sites()
  /// What the closed form leaves out or only approximates; see approximations().
  std::vector<std::string> approximations;
  [[nodiscard]] bool exact() const { return approximations.empty(); }
};

/// The parts from which closed_form() computes its report: wall clock = rounds · round.duration_s.
ClosedFormParts closed_form_parts(const Scenario& scenario);
double closed_form_wall_clock_s(const Scenario& scenario);

}  // namespace fomoe::costmodel
