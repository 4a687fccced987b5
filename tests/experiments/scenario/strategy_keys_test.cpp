// Tests that the tables of [strategy] agree: the fields, the keys with their help, and the keys of each
// method.
#include "costmodel/inputs/strategy_keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/methods/all.hpp"
#include "experiments/scenario/keys/keys.hpp"

using namespace fomoe;

namespace {

bool is_strategy_key(std::string_view name) {
  const auto keys = scenario::scenario_keys();
  return std::any_of(keys.begin(), keys.end(), [&](const scenario::Key& key) {
    return (key.table == "strategy" && key.name == name) || key.table == "strategy." + std::string(name);
  });
}

}  // namespace

TEST_CASE("every field of [strategy] and every key of a method is a key that the scenario may have") {
  CHECK_FALSE(is_strategy_key("local_step"));
  for (const costmodel::StrategyKey& key : costmodel::kKeysOfSomeMethods) {
    CAPTURE(std::string(key.name));
    CHECK(is_strategy_key(key.name));
  }
  for (const costmodel::Method& method : costmodel::methods()) {
    for (const std::string_view axis : method.axes) {
      CAPTURE(method.name + ": " + std::string(axis));
      CHECK(is_strategy_key(axis));
    }
  }
}

TEST_CASE("a key that only some methods list is reported as ignored by the others") {
  // Other notes tell of the overlap and of formats; the other keys have a meaning for every method.
  const std::vector<std::string_view> others = {"expert_overlap", "parameter_dtype", "dispatch_dtype",
                                                "payload_dtype",  "compression",     "local_steps",
                                                "skip_token"};
  for (const costmodel::Method& method : costmodel::methods()) {
    for (const std::string_view axis : method.axes) {
      CAPTURE(method.name + ": " + std::string(axis));
      const auto& keys = costmodel::kKeysOfSomeMethods;
      const bool reported = std::any_of(std::begin(keys), std::end(keys),
                                        [&](const costmodel::StrategyKey& key) { return key.name == axis; });
      CHECK(reported != (std::find(others.begin(), others.end(), axis) != others.end()));
    }
  }
}

TEST_CASE("the names of an enumeration are read, written and listed from one table") {
  using costmodel::Collective;
  const std::vector<std::string> names = costmodel::all_names<Collective>();
  CHECK(names == std::vector<std::string>{"ring", "direct", "hierarchical", "recursive", "store", "chain"});
  for (const std::string& name : names)
    CHECK(to_string(costmodel::enum_of<Collective>(name).value()) == name);
  CHECK_FALSE(costmodel::enum_of<Collective>("rings").has_value());
}
