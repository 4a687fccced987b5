// Rounds in which the pseudo-gradients of a round are averaged among all M sites while the next round trains.
// At its end, round r+1 waits for the average of round r and applies an outer step. Then its own
// pseudo-gradients are sent. Each site sends B bytes per round, where S is the size of the whole model. The K
// steps of a round hide a synchronisation, where t_step is the time of a step and t_sync that of a
// synchronisation:
//   B = 2(M−1)/M · S
//   round = K·t_step + max(0, t_sync − K·t_step)
// A run of R rounds has R − 1 outer steps, since nothing applies the last average.
#pragma once
#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

Plan plan_with_delay(const Scenario& scenario);

PlanSummary delay_formula(const Axes& axes, const Fixed& fixed);

}  // namespace fomoe::costmodel
