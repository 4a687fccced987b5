// A scenario in JSON, as the TOML table with the same content.
#pragma once
#include <toml++/toml.h>

#include <map>
#include <string>

namespace fomoe::scenario {

struct JsonTable {
  toml::table table;
  std::map<std::string, unsigned> lines;  // line of each dotted key
  /// The text of the scenario in TOML, if the file is the report of a measured run. The other members are
  /// then empty.
  std::string scenario_of_run;
};

/// Throws FileError at the line of `path` at which `text` is not valid JSON, or has a null, which TOML lacks;
/// and for a report whose scenario needs files of its own, or that has no scenario in TOML.
JsonTable table_of_json(const std::string& path, const std::string& text);

}  // namespace fomoe::scenario
