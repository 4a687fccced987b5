// Tests what each site sends and receives in the closed form where sites differ.
#include "costmodel/formula/sent_to.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <vector>

#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/resolved.hpp"
#include "costmodel/plan/site_shares.hpp"
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

TEST_CASE("owners of experts send dense parameters to the next site, and experts to the next owner") {
  Scenario scenario = tests::ideal_scenario("fomoe", 4, 2);
  scenario.platform.sites[2].uplink_bytes_per_s *= 0.5;  // links differ
  const Resolved resolved = resolve(scenario);
  const double dense = resolved.plan.sent.dense, experts = resolved.plan.sent.expert_sync;
  const double all = dense + experts;
  using doctest::Approx;
  // The blocks of owners are the sites 0 and 1, and 2 and 3.
  const std::vector<double> of_0 = sent_to(resolved, 0, all), of_1 = sent_to(resolved, 1, all);
  CHECK(of_0[1] == Approx(all));
  CHECK(of_0[2] + of_0[3] == 0);
  CHECK(of_1[2] == Approx(dense));
  CHECK(of_1[0] == Approx(experts));
}

TEST_CASE("the next owner of a drawn expert is as far as in all sets of owners") {
  const int sites = 6;
  for (int owners = 2; owners <= sites; ++owners) {
    CAPTURE(owners);
    std::vector<double> counts(sites, 0.0);
    double all = 0;
    for (int set = 0; set < 1 << sites; ++set) {
      const auto owns = [&](int site) { return (set >> (site % sites) & 1) != 0; };
      if (std::popcount(static_cast<unsigned>(set)) != owners || !owns(0)) continue;
      int gap = 1;
      while (!owns(gap)) ++gap;
      counts[static_cast<std::size_t>(gap % sites)] += 1;
      all += 1;
    }
    const std::vector<double> probabilities = next_owner_probabilities(sites, owners);
    REQUIRE(probabilities.size() == sites - 1);
    for (std::size_t gap = 1; gap < sites; ++gap)
      CHECK(probabilities[gap - 1] == doctest::Approx(counts[gap] / all));
  }
}
