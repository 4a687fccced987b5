// Reads the file of a grid: the training runs that an experiment consists of.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::trainer {

/// One training run of a grid.
struct GridRun {
  /// 12 hexadecimal digits that depend on the scenario with all overrides and on the files that it names, but
  /// not on its name and description, and not on the training data.
  std::string id;
  std::vector<std::string> overrides;  // as for --set
  costmodel::Scenario scenario;        // with a placeholder instead of its step times
};

struct Grid {
  std::string scenario_path;
  std::vector<std::string> keys;  // all keys that the file sets or varies, in the order in which they appear
  std::vector<GridRun> runs;      // in the order in which they are made; no two have the same id
};

/// The runs of all tables [[runs]] for the first combination of the values of the file's own `vary`, then for
/// the next combination, so that the first seed gives a whole figure. Every scenario is read and checked
/// here. `overrides` are applied to all runs, after those of the file. Throws FileError or UsageError if the
/// file or any of the scenarios is wrong.
Grid read_grid(const std::string& path, const std::vector<std::string>& overrides);

/// The value that a run gives to a key, without quotes; empty if it leaves the scenario's value.
std::string value_in(const GridRun& run, const std::string& key);

}  // namespace fomoe::trainer
