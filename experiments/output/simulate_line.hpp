// The command line that simulates a row of a plan.
#pragma once
#include <string>

#include "experiments/planner/answer.hpp"

namespace fomoe::commands {

/// KEY=VALUE as one word of a shell's command line, with quotes where it needs them.
std::string shell_word(const std::string& assignment);

/// The command "fomoe simulate S.toml --set …" that simulates the finalist, quoted for a shell.
std::string simulate_line(const planner::Question& question, const planner::Finalist& finalist);

}  // namespace fomoe::commands
