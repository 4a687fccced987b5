// Wall clock by formula: the specification of the simulator for fluid links.
#pragma once
#include <string>

#include "costmodel/compute/site_times.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// Computes the report of a run by formula:
///   T = Σ_steps t_step + Σ_rounds [outer step + Σ_stages max(0, t_stage − hidden)]
///   t_stage = hops · latency + bytes ÷ port, over the stage's slowest links (links.hpp)
/// T is the wall clock, and t_step is the computation time of one optimiser step. A stage is a set of
/// transfers that run at the same time, and t_stage is its duration. `hidden` is the compute time that can
/// hide the stage.
RunReport closed_form(const Scenario& scenario);

/// The slowest port of the platform, by name: "uplink of paris".
std::string slowest_port(const platforms::Platform& platform);

/// Times of a step at the site whose steps take longest, with all that slows it down, and what they follow
/// from.
ComputeTimes slowest_times(const Scenario& scenario, const Resolved& resolved);

}  // namespace fomoe::costmodel
