// A scenario as text that needs no other file: what a measured report carries, so that it can be predicted on
// any machine, later.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/scenario/scenario_reader.hpp"

namespace fomoe::scenario {

/// `toml` after all overrides, with the files it names (profile, platform, prices, …) beside it by the names
/// that it uses for them. trainer.data is left out: it is large, and no prediction depends on it.
struct ScenarioSource {
  std::string toml;
  std::map<std::string, std::string> files;  // name → content
};

/// Of the file that was read with these options. Throws FileError where one of the files cannot be read.
ScenarioSource scenario_source(const std::string& path, const ReadOptions& options);

/// What read_scenario() of the original file gives, but for the paths in provenance. `overrides` come on top.
/// Throws FileError; places are then "<name>/scenario.toml:line".
costmodel::Scenario read_scenario(const ScenarioSource& source, const std::string& name,
                                  const std::vector<std::string>& overrides = {});

}  // namespace fomoe::scenario
