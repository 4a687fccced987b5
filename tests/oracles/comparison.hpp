// Helpers that all oracles share: fomoe's own result for a transfer, and the rows of the table of results.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/plan/plan.hpp"
#include "platforms/platform.hpp"

namespace fomoe::oracles {

/// Simulates the plan, and returns the time at which each node ends. Each computation takes `compute_s`.
std::vector<double> fomoe_end_s(const costmodel::Plan& plan, const platforms::Platform& raw,
                                const costmodel::NetworkModel& network = {}, double compute_s = 0);

double latest(const std::vector<double>& end_s);

/// Runs a command, and returns its standard output. Throws an exception with that output if the command
/// fails.
std::string output_of(const std::string& command);

struct Row {
  std::string name;
  double fomoe_s = 0, oracle_s = 0;
  std::string cause;  // cause of the difference
};

/// Prints the row, and appends it as Markdown to the file that the environment variable FOMOE_ORACLE_TABLE
/// names.
void tell(const Row& row);

}  // namespace fomoe::oracles
