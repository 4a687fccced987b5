// The closed form, taken apart: what its last line is made of.
#pragma once
#include <string>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/round_times.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

struct ClosedFormParts {
  PlanSummary summary;        // of the mean round
  Links<double> links;        // the slowest uplink, downlink and path and the longest latency, effective
  std::string port;           // the slowest: "uplink of paris"
  ComputeTimes slowest_site;  // of one step
  RoundTimes<double> round;
};

/// closed_form() answers with these: wall clock = rounds · round.duration_s.
ClosedFormParts closed_form_parts(const Scenario& scenario);
double closed_form_wall_clock_s(const Scenario& scenario);

}  // namespace fomoe::costmodel
