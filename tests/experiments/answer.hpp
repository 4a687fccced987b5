// Answers of the real program in JSON, for tests.
#pragma once
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

namespace fomoe::tests {

/// The JSON that `command`, run in the source folder with `--output -`, writes on stdout. It must succeed
/// without a message.
inline nlohmann::json answer(const std::string& command) {
  const Ran ran = run(command);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(ran.err.empty());
  return nlohmann::json::parse(ran.out);
}

}  // namespace fomoe::tests
