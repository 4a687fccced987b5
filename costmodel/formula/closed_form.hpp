// Wall clock by formula: the specification of the simulator for equal sites, fluid links and no latency.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// The report of a run by formula, where `hidden` is the compute time that can hide a stage:
///   T = Σ_steps t_step + Σ_rounds [outer step + Σ_stages max(0, t_stage − hidden)]
///   t_stage = hops · latency + bytes ÷ slowest port
RunReport closed_form(const Scenario& scenario);

}  // namespace fomoe::costmodel
