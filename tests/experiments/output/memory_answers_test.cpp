// Tests of a scenario whose model does not fit into its GPUs: every answer says so first, with a remedy.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;
using nlohmann::json;

// Qwen3-30B-A3B on 8 GPUs of 141 GB per site, each with a full replica: 26 B · 30.5e9 = 794 GB.
const std::string kTooLarge =
    "experiments/scenarios/four-regions.toml --set compute.sharded=1 --set compute.outer_state_on=device "
    "--set network_model.host=ideal";

std::string out(const std::string& command) {
  const Ran ran = run_in(source_dir(), command);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return ran.out;
}

}  // namespace

TEST_CASE("simulate begins with the note that the model does not fit, and does not repeat it at the end") {
  const std::string text = out("fomoe simulate " + kTooLarge);
  const std::size_t at = text.find("This scenario cannot run as configured: it does not fit: a GPU needs ");
  CHECK(at < text.find("wall clock"));
  CHECK(text.find("with compute.sharded=8 the model would fit (") != std::string::npos);
  CHECK(text.find("Note: does not fit") == std::string::npos);
  CHECK(out("fomoe simulate experiments/scenarios/four-regions.toml").find("cannot run") ==
        std::string::npos);
}

TEST_CASE("the proposed settings are accepted, and with them the model fits") {
  const std::string fits = out("fomoe simulate " + kTooLarge + " --set compute.sharded=8");
  CHECK(fits.find("cannot run") == std::string::npos);
}

TEST_CASE("cost, compare, solve and plan also say that the model does not fit") {
  CHECK(out("fomoe cost " + kTooLarge).find("This scenario cannot run as configured: it does not fit: ") !=
        std::string::npos);
  const std::string compared =
      out("fomoe compare " + kTooLarge + " --case strategy.method=ddp --case compute.sharded=8");
  CHECK(compared.starts_with("strategy.method=ddp cannot run as configured: it does not fit: "));
  CHECK(compared.find("compute.sharded=8 cannot run") == std::string::npos);
  CHECK(out("fomoe solve " + kTooLarge + " --for platform.rate_factor --target utilization=90%")
            .find("However, this configuration cannot run: it does not fit: ") != std::string::npos);
  const std::string plan =
      out("fomoe plan " + kTooLarge + " --vary strategy.method=diloco --vary strategy.local_steps=64");
  CHECK(plan.starts_with("No configuration is possible: all "));
  CHECK(plan.find("The baseline does not fit into a GPU's memory; with compute.sharded=8 the "
                  "model would fit (") != std::string::npos);
}

TEST_CASE("the report shows the note above all other content") {
  const Folder folder;
  const std::string scenario = source_dir() + '/' + kTooLarge;
  REQUIRE(run_in(folder.path(), "fomoe simulate " + scenario + " --output run.json").exit_status == 0);
  REQUIRE(run_in(folder.path(), "fomoe report run.json --output r.html").exit_status == 0);
  const std::string page = read_all(folder / "r.html");
  const std::size_t at =
      page.find("<p class=\"warning\"><strong>This scenario cannot run as configured: it does not fit: ");
  CHECK(at < page.find("<dl class=\"figures\">"));
}
