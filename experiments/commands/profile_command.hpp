// The three subcommands of `fomoe profile`: import, compose and scale.
#pragma once
#include "experiments/cli/command.hpp"

namespace fomoe::commands {

void run_profile_import(const Arguments& arguments);
void run_profile_compose(const Arguments& arguments);
void run_profile_scale(const Arguments& arguments);

}  // namespace fomoe::commands
