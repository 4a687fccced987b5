// Tests of `fomoe reproduce runs` against the table from which it is made.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;
using nlohmann::json;

TEST_CASE("reproduce runs prints each published run beside its prediction, and how near each system is") {
  const Folder folder;
  const Ran ran = run_in(folder.path(), "fomoe reproduce runs --output r");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json document = json::parse(read_all(folder / "r/runs.json"));
  std::map<std::string, int> near, compared;
  for (const json& row : document["rows"]) {
    CHECK(ran.out.find(row["id"].get<std::string>()) != std::string::npos);
    CHECK_FALSE(row["source"].get<std::string>().empty());
    if (row["status"] == "missing") CHECK_FALSE(row["why"].get<std::string>().empty());
    if (!row["ratio"].is_number()) continue;
    const double predicted = row["predicted"], published = row["published"];
    CHECK(row["ratio"].get<double>() == doctest::Approx(predicted / published).epsilon(0.01));
    const bool utilisation = row["quantity"] == "compute_utilization";
    ++compared[row["system"]];
    near[row["system"]] += utilisation ? std::abs(predicted - published) <= 0.03
                                       : std::abs(row["ratio"].get<double>() - 1) <= 0.15;
  }
  CHECK(compared.size() > 5);
  for (const json& system : document["findings"]["systems"]) {
    CHECK(system["compared"] == compared[system["system"]]);
    if (system["compared"] > 0) CHECK(system["near"] == near[system["system"]]);
  }
}
