// Answers of `fomoe plan` for tests, from the example with two sites and ideal hosts.
#pragma once
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

namespace fomoe::tests {

inline const std::string kFourSites = kTwoSites + " --set platform.sites=4";

inline nlohmann::json planned(const std::string& options) {
  const Ran ran = run_in(source_dir(), "fomoe plan " + options + " --output -");
  REQUIRE_MESSAGE((ran.exit_status == 0 || ran.exit_status == 3), ran.err);
  const nlohmann::json plan = nlohmann::json::parse(ran.out);
  // Status 3: nothing meets the limits.
  CHECK((ran.exit_status == 3) == plan["recommended"].is_null());
  return plan;
}

inline void refused(const std::string& command, const std::string& message) {
  const Ran ran = run_in(source_dir(), command);
  CHECK(ran.exit_status == 2);
  CHECK(ran.out.empty());
  CHECK_MESSAGE(ran.err == message + "\n", ran.err);
}

}  // namespace fomoe::tests
