// The closed form on a grid of settings, for a page that works without fomoe.
#pragma once
#include "experiments/explore/question.hpp"

namespace fomoe::explore {

/// {name, description, path, currency, controls, grid}. The controls have the kind "steps": the values of an
/// axis, as --set takes them. `grid` has a block for each method, number format and O_e that the reader
/// accepts: {local_steps: [K], bytes: [by K], problem, wall_clock_s, utilization, cost}. The last three are
/// lists over K, latency factor and rate factor, of which the last varies fastest; a null stands for a
/// combination that is refused.
Json grid_of(const Question& question);

}  // namespace fomoe::explore
