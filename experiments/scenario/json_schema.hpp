// The keys of a scenario as a JSON Schema, for editors and for other programs.
#pragma once
#include <string>

namespace fomoe::scenario {

/// JSON Schema, draft 2020-12, of a scenario file in TOML or JSON. It comes from the table of keys, so that
/// it accepts the names and the forms of values that the scenario parser accepts. It does not say which keys
/// exclude or need each other; the parser does.
std::string json_schema();

}  // namespace fomoe::scenario
