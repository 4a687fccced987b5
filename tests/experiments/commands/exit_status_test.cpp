// Tests exit statuses: limits that nothing meets, and full disks.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {}  // namespace

TEST_CASE("simulate and compare end with status 3 if nothing meets --within, and their answer is complete") {
  const std::string simulate = "fomoe simulate " + kTwoSites;
  CHECK(run(simulate + " --within time=1h").exit_status == 0);
  const Ran late = run(simulate + " --within time=10s --output -");
  CHECK(late.exit_status == 3);
  CHECK(late.err == "fomoe: the run takes longer than the limit (--within)\n");
  CHECK(json::parse(late.out)["wall_clock_s"] > 10);
  const std::string compare =
      "fomoe compare " + kTwoSites + " --case strategy.method=ddp --case \"\" --within ";
  const Ran one = run(compare + "time=100s");
  CHECK(one.exit_status == 0);
  CHECK(one.out.find("Outside --within: \"ddp\" takes longer than the limit.\n") != std::string::npos);
  const Ran neither = run(compare + "time=10s");
  CHECK(neither.exit_status == 3);
  CHECK(neither.err == "fomoe: no case meets the limits of --within\n");
  CHECK(run(simulate + " --within tim=1h").exit_status == 2);
}

TEST_CASE("on a full disk a command ends with exit status 1") {
  if (!std::filesystem::exists("/dev/full")) return;
  CHECK(run("bash -c 'fomoe cost " + kTwoSites + " >/dev/full'").exit_status == 1);
}
