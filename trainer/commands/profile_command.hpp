// The command line of `fomoe-train profile`.
#pragma once
#include <string>
#include <vector>

#include "platforms/support/input_error.hpp"

namespace fomoe::trainer {

/// `arguments` are the arguments after the subcommand. Returns the exit code.
int profile_command(const std::vector<std::string>& arguments);

}  // namespace fomoe::trainer
