// Tests the column of `fomoe plan` with the rounds of a run.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {
const std::string kDilocoSites = "tests/ideal/two-sites.toml --set platform.sites=4";
}  // namespace

TEST_CASE("the plan shows the rounds of a run, and marks fewer than 20") {
  const std::string question =
      kDilocoSites +
      " --vary strategy.method=diloco --vary strategy.local_steps=1,2,4,64,256,1024 --vary "
      "strategy.payload_dtype=bf16 --top 9";
  const Ran planned = run_in(source_dir(), "fomoe plan " + question + " --output -");
  REQUIRE_MESSAGE(planned.exit_status == 0, planned.err);
  const json plan = json::parse(planned.out);
  const std::int64_t steps = json::parse(
      run_in(source_dir(), "fomoe simulate " + kDilocoSites + " --output -").out)["optimizer_steps"];
  REQUIRE(plan["frontier"].size() > 2);
  bool few = false, many = false;
  for (const json& row : plan["frontier"]) {
    const std::int64_t each = row["local_steps"], rounds = row["rounds"];
    CHECK(rounds == (steps + each - 1) / each);
    few = few || rounds < 20;
    many = many || rounds >= 20;
  }
  REQUIRE(few);
  REQUIRE(many);
  const std::string text = run_in(source_dir(), "fomoe plan " + question).out;
  for (const json& row : plan["frontier"]) {
    const std::int64_t rounds = row["rounds"];
    CHECK((text.find(" " + std::to_string(rounds) + "* ") != std::string::npos) == (rounds < 20));
  }
  CHECK(text.find("*: fewer than 20 synchronisations in the whole run") != std::string::npos);
}
