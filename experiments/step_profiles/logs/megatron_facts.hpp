// Facts that Megatron-LM, and programs that train with it, log before the first step.
#pragma once
#include <string>

#include "experiments/step_profiles/logs/log_reader.hpp"

namespace fomoe::step_profiles {

/// Facts in one line: of the list of arguments, in which dots follow the names; of "using world size: …"; and
/// the parameters of a tensor- and pipeline-parallel rank.
StatedFacts megatron_facts(const std::string& line);

}  // namespace fomoe::step_profiles
