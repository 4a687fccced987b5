// Tests what each site sends and receives in the closed form where sites differ.
#include "costmodel/formula/sent_to.hpp"

#include <doctest/doctest.h>

#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

TEST_CASE("the server of a star sends the model to each site, and each site sends it one") {
  for (const char* method : {"fedavg", "async_diloco"}) {
    CAPTURE(method);
    Scenario scenario = tests::ideal_scenario(method, 8);
    if (method == std::string("async_diloco")) scenario.strategy.staleness = 1;
    const RunReport report = closed_form(scenario);
    const double model_bytes = 2.0 * static_cast<double>(parameters_per_site(scenario));  // bf16
    const double rounds = static_cast<double>(report.round.count);
    REQUIRE(report.sites.size() == 8);
    CHECK(report.sites[0].bytes_sent == doctest::Approx(7 * model_bytes * rounds));
    CHECK(report.sites[0].bytes_received == doctest::Approx(7 * model_bytes * rounds));
    for (std::size_t site = 1; site < 8; ++site) {
      CHECK(report.sites[site].bytes_sent == doctest::Approx(model_bytes * rounds));
      CHECK(report.sites[site].bytes_received == doctest::Approx(model_bytes * rounds));
    }
  }
}
