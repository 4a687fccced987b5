// Intermediate results of the closed form.
#pragma once
#include <string>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/round_times.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

struct ClosedFormParts {
  PlanSummary summary;        // summary of the mean round
  LinkSets<double> links;     // of the effective platform
  std::string port;           // slowest port: "uplink of paris"
  ComputeTimes slowest_site;  // times of one step
  RoundTimes<double> round;
  bool represents_links = true;  // see represents_links(); if false, the times are pessimistic
};

/// The parts from which closed_form() computes its report: wall clock = rounds · round.duration_s.
ClosedFormParts closed_form_parts(const Scenario& scenario);
double closed_form_wall_clock_s(const Scenario& scenario);

}  // namespace fomoe::costmodel
