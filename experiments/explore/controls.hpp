// The sliders and choices of the page, as they suit the scenario.
#pragma once
#include "experiments/explore/question.hpp"

namespace fomoe::explore {

/// {name, description, controls: [{key, label, kind, …}]}. Kinds:
///   number   a slider and a field: value in SI units, min, max, log, whole, unit ("rate", "time", "count",
///            "factor", "share"), text (the value as the scenario has it)
///   choice   one of `choices`; an empty text stands for the default
///   sites    a subset of `choices`, all names of the platform's file
/// `hint` is a sentence for people. Throws what the reader throws.
Json controls_of(const Question& question);

}  // namespace fomoe::explore
