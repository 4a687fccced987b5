// Tests which row `fomoe plan` recommends.
#include <doctest/doctest.h>

#include "tests/experiments/planner/planned.hpp"

using namespace fomoe::tests;
using nlohmann::json;

TEST_CASE("--slack: none takes the fastest within 1 %, a large one the least risk of all") {
  const std::string axes =
      " --vary strategy.method=diloco --vary strategy.local_steps=1,2,4,8 --vary strategy.collective=ring "
      "--vary strategy.payload_dtype=bf16";
  const json none = planned(kFourSites + axes + " --slack 0%"),
             all = planned(kFourSites + axes + " --slack 100%");
  CHECK(none["recommended"]["local_steps"] == 8);
  CHECK(all["recommended"]["local_steps"] == 2);  // K = 1 takes three times as long as K = 8
  CHECK(all["slack"] == 1);
  refused("fomoe plan " + kFourSites + " --slack much",
          "fomoe: --slack: got \"much\"; expected a share from 0% to 100%; for example --slack 5%");
}

TEST_CASE("a synchronisation that is a whole round late counts as a risk: plain diloco is not dominated") {
  const json plan =
      planned(kFourSites +
              " --set platform.bandwidth=10Gbps --vary strategy.method=diloco,diloco_x,eager_diloco "
              "--vary strategy.local_steps=4 --vary strategy.payload_dtype=bf16 --slack 20%");
  CHECK(plan["recommended"]["method"] == "diloco");
}
