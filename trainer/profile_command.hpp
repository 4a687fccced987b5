// The command line of `fomoe-train profile`.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

namespace fomoe::trainer {

/// The user's mistake on the command line: the program prints it and exits 2.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// `arguments` are those after the subcommand. Returns the exit code.
int profile_command(const std::vector<std::string>& arguments);

}  // namespace fomoe::trainer
