// Wall-clock by formula: the specification of the simulator for equal sites, fluid links and no latency.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// T = Σ_steps t_step + Σ_rounds [outer step + Σ_stages max(0, hops·latency + bytes ÷ slowest port − what can
/// hide)].
RunReport closed_form(const Scenario& scenario);

}  // namespace fomoe::costmodel
