// Tests `fomoe list keys --json-schema`. tests/python/test_schema.py validates scenario files against the
// schema.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "experiments/scenario/keys/keys.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;
using fomoe::scenario::Key;
using nlohmann::json;

namespace {

const json& schema() {
  static const json read = json::parse(run_in(source_dir(), "fomoe list keys --json-schema").out);
  return read;
}

/// The schema of a table: "strategy.compression" is a table in a table, and [[site]] is a list of tables.
json table_of(const std::string& path) {
  json table = schema();
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    table = table.at("properties").at(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return table.contains("items") ? table.at("items") : table;
}

}  // namespace

TEST_CASE("the schema has every key of the table, with its description") {
  CHECK(schema().at("$schema") == "https://json-schema.org/draft/2020-12/schema");
  for (const Key& key : fomoe::scenario::scenario_keys()) {
    CAPTURE(key.name);
    const json table = table_of(std::string(key.table));
    CHECK(table.at("additionalProperties") == false);
    const json& property = table.at("properties").at(std::string(key.name));
    CHECK(property.at("description").get<std::string>().find(key.sentence.substr(1)) != std::string::npos);
    CHECK(property.contains("default") == !key.fallback.empty());
  }
}

TEST_CASE("types, choices, bounds and units of the schema") {
  const json strategy = table_of("strategy").at("properties");
  const json& methods = strategy.at("method").at("enum");
  CHECK(std::find(methods.begin(), methods.end(), "streaming_diloco") != methods.end());
  CHECK(strategy.at("local_steps").at("type") == "integer");
  CHECK(strategy.at("local_steps").at("minimum") == 1);
  CHECK(strategy.at("local_steps").at("default") == 1);
  CHECK(strategy.at("overlap_steps").at("minimum") == 0);
  CHECK(table_of("platform").at("properties").at("bandwidth").at("pattern").get<std::string>().find("Gbps") !=
        std::string::npos);
  CHECK(table_of("strategy").at("required") == json{"method"});
  // A [[site]] may have the keys of [compute] that may differ between sites.
  const json site = table_of("site").at("properties");
  CHECK(site.contains("step_time"));
  CHECK_FALSE(site.contains("straggler_share"));
  CHECK(table_of("site").at("required") == json{"name"});
}

TEST_CASE("--json-schema belongs to `list keys`") {
  const Ran ran = run_in(source_dir(), "fomoe list methods --json-schema");
  CHECK(ran.exit_status == 2);
  CHECK(ran.err ==
        "fomoe: --json-schema: got this option with `list methods`; expected `list keys`; for example fomoe "
        "list "
        "keys --json-schema\n");
}
