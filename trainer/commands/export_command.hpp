// The command line of `fomoe-train export`.
#pragma once
#include <string>
#include <vector>

namespace fomoe::trainer {

/// `arguments` are the arguments after the subcommand. Returns the exit code.
int export_command(const std::vector<std::string>& arguments);

}  // namespace fomoe::trainer
