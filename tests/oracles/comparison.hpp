// What the oracles have in common: fomoe's own answer to a transfer, and a line of the table in README.md.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/plan/plan.hpp"
#include "platforms/platform.hpp"

namespace fomoe::oracles {

/// Simulates the plan and says when each node was through. What it computes takes `compute_s`.
std::vector<double> fomoe_end_s(const costmodel::Plan& plan, const platforms::Platform& raw,
                                const costmodel::NetworkModel& network = {}, double compute_s = 0);

double latest(const std::vector<double>& end_s);

/// Runs a command, gives its standard output. Throws with that output where the command fails.
std::string output_of(const std::string& command);

struct Row {
  std::string name;
  double fomoe_s = 0, oracle_s = 0;
  std::string cause;  // of the difference
};

/// Prints the row, and adds it to the file that FOMOE_ORACLE_TABLE names, as Markdown.
void tell(const Row& row);

}  // namespace fomoe::oracles
