// Tests of the line about validation: whether a scenario lies outside of the validated ranges, and by how
// much.
#include <doctest/doctest.h>

#include <sstream>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;

namespace {

std::string validation_line(const std::string& overrides) {
  const Ran ran = run_in(source_dir(), "fomoe simulate experiments/validation/base.toml " + overrides);
  REQUIRE(ran.exit_status == 0);
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("Validation: ")) return line;
  FAIL("no line about validation");
  return {};
}

}  // namespace

TEST_CASE("simulate says whether a case lies inside of the validated ranges, and else how far outside") {
  // The validation includes runs of this method with four sites at 200 Mb/s and 50 ms.
  const std::string inside =
      "--set platform.sites=4 --set platform.bandwidth=200Mbps --set platform.latency=50ms "
      "--set model.d_model=128 --set model.d_expert=64 --set model.vocabulary=512";
  CHECK(validation_line(inside).find("inside the ranges") != std::string::npos);

  const std::string far =
      validation_line(inside + " --set platform.latency=400ms --set platform.bandwidth=10Gbps");
  CHECK(far.find("latency 400 ms: 2.78 times the maximum of the validated range (2 ms to 144 ms)") !=
        std::string::npos);
  CHECK(
      far.find(
          "link rate 1e+04 Mbit/s: 10 times the maximum of the validated range (14 Mbit/s to 1000 Mbit/s)") !=
      std::string::npos);
  CHECK(validation_line(inside + " --set strategy.method=gossip")
            .find("method gossip: the validated methods are ddp, ") != std::string::npos);
  CHECK(validation_line(inside + " --set platform.sites=8").find("sites 8: 1.33 times the maximum") !=
        std::string::npos);
}
