// A scenario as text together with the files that it names. The reports of measured runs contain this text
// and the files, so that the run can be predicted later on any machine.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/scenario/scenario_reader.hpp"

namespace fomoe::scenario {

/// `toml` is the scenario after all overrides. The files that it names (profile, platform, prices, …) are in
/// `files` under the names used in `toml`. What trainer.data and trainer.validation_data name is left out,
/// because it is large and no prediction depends on it.
struct ScenarioSource {
  std::string toml;
  std::map<std::string, std::string> files;  // name → content
};

/// Collects the scenario that was read from this file with these options. Throws FileError if one of the
/// files cannot be read.
ScenarioSource scenario_source(const std::string& path, const ReadOptions& options);

/// Gives the same scenario as read_scenario() of the original file, except for paths in provenance.
/// `overrides` are applied on top. Throws FileError; places in messages are "<name>/scenario.toml:line".
costmodel::Scenario read_scenario(const ScenarioSource& source, const std::string& name,
                                  const std::vector<std::string>& overrides = {});

}  // namespace fomoe::scenario
