// fomoe-train grid: trains every combination of several keys' values and seeds.
#pragma once
#include <string>
#include <vector>

namespace fomoe::trainer {

int grid_command(const std::vector<std::string>& arguments);

}  // namespace fomoe::trainer
