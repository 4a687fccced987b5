// Tests of costs and energy against sums by hand. Prices are round numbers, so that every sum can be checked
// on paper.
#include "costmodel/value/cost.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>

#include "costmodel/formula/closed_form.hpp"
#include "tests/scenarios.hpp"

using namespace fomoe;
using namespace fomoe::costmodel;

namespace {

constexpr double kGb = 1e9, kTb = 1e12;

// Per month: 0.10 per GB up to 10 TB, 0.05 per GB up to 50 TB, 0.01 per GB beyond.
const std::vector<EgressTier> kTiers = {
    {10 * kTb, 0.10 / kGb}, {50 * kTb, 0.05 / kGb}, {std::numeric_limits<double>::infinity(), 0.01 / kGb}};

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

}  // namespace

TEST_CASE("egress of a month: each byte is charged at the price of its tier") {
  const auto price = [](double bytes) { return egress_price_of_month(kTiers, bytes); };
  CHECK(price(0) == 0);
  CHECK(close(price(4 * kTb), 4000 * 0.10));
  CHECK(close(price(10 * kTb), 1000));                                    // up to the edge of the first tier
  CHECK(close(price(12 * kTb), 1000 + 2000 * 0.05));                      // into the second tier
  CHECK(close(price(60 * kTb), 1000 + 40'000 * 0.05 + 10'000 * 0.01));    // into the third tier
  CHECK(egress_price_of_month(std::vector<EgressTier>{}, 4 * kTb) == 0);  // without a price there is no cost
}

TEST_CASE("egress: the tiers start again at zero in every month") {
  // 24 TB in two months are 12 TB in each month: 2 · (1000 + 100), not 1000 + 700.
  CHECK(close(egress_price(kTiers, 24 * kTb, 2 * kMonthSeconds), 2 * 1100.0));
  // 30 TB in two and a half months are 12 TB, 12 TB and 6 TB.
  CHECK(close(egress_price(kTiers, 30 * kTb, 2.5 * kMonthSeconds), 1100 + 1100 + 600.0));
  // A run of one hour is charged by one month's tiers.
  CHECK(close(egress_price(kTiers, 12 * kTb, 3600.0), 1100));
}

TEST_CASE("egress: more bytes never cost less, and no byte costs more than the first tier's price") {
  const bool ok = rc::check("monotone in bytes", [] {
    const auto bytes = static_cast<double>(*rc::gen::inRange<std::int64_t>(0, 400'000'000'000'000));
    const auto duration_s = static_cast<double>(*rc::gen::inRange(1, 20'000'000));
    const double price = egress_price(kTiers, bytes, duration_s);
    RC_ASSERT(price <= bytes * 0.10 / kGb * (1 + 1e-9));
    RC_ASSERT(egress_price(kTiers, bytes + kTb, duration_s) >= price * (1 - 1e-12));
  });
  CHECK(ok);
}

TEST_CASE("ports: every month that has begun is paid in full") {
  SitePrices prices;
  prices.port_price_per_month = 1600;
  CHECK(port_price(prices, 1.0) == 1600);
  CHECK(port_price(prices, kMonthSeconds) == 1600);
  CHECK(port_price(prices, 1.01 * kMonthSeconds) == 3200);
}

TEST_CASE("energy: board power while busy, the idle share of it while waiting, times PUE") {
  const GpuPower power{700, 0.2, 1.5};
  // 8 GPUs for one hour, of which 45 min are busy: 8 · 1.5 · 700 W · (0.75 h + 0.2 · 0.25 h) = 6.72 kWh
  CHECK(close(energy_joules(power, 8.0, 3600.0, 2700.0) / kJoulesPerKwh, 6.72));
  // The same by utilisation: P = 700 W · (0.2 + 0.8 · 0.75)
  CHECK(close(energy_joules(power, 8.0, 3600.0, 2700.0), 8 * 1.5 * 700 * (0.2 + 0.8 * 0.75) * 3600));
}

TEST_CASE(
    "a run's cost by hand: GPUs for the whole wall clock, and egress for the bytes that each site sends") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  scenario.compute = AssumedDevice{1e12, 0.5};
  scenario.gpus.count = 8;
  SitePrices cheap{Pricing::on_demand,
                   2.0 / 3600,
                   100,
                   0.36 / kJoulesPerKwh,
                   {{std::numeric_limits<double>::infinity(), 0.02 / kGb}},
                   {}};
  SitePrices dear = cheap;
  dear.gpu_price_per_s = 4.0 / 3600;
  scenario.prices =
      Prices{"EUR", "2026-01-15", {cheap, cheap, cheap, dear}, {{"prices", Origin::assumed, "a test"}}};
  scenario.power = GpuPower{700, 0.2, 1.0};
  const RunReport report = closed_form(scenario);
  REQUIRE(report.cost.has_value());
  const double hours = report.wall_clock_s / 3600;
  const double sent_gb = report.sites[0].bytes_sent / kGb;
  const double busy_hours = report.round.compute_s * static_cast<double>(report.round.count) / 3600;
  const double kwh = 4 * 8 * 0.7 * (busy_hours + 0.2 * (hours - busy_hours));
  CHECK(busy_hours < hours);
  CHECK(close(report.cost->gpu_cost, 8 * hours * (2 + 2 + 2 + 4)));
  CHECK(close(report.cost->egress_cost, 4 * sent_gb * 0.02));
  CHECK(report.cost->port_cost == 400);
  CHECK(close(*report.cost->energy_kwh, kwh));
  CHECK(close(report.cost->energy_cost, kwh * 0.36));
  CHECK(close(report.cost->cost_total,
              report.cost->gpu_cost + report.cost->egress_cost + 400 + report.cost->energy_cost));
  CHECK(report.cost->currency == "EUR");
  CHECK(std::any_of(report.provenance.begin(), report.provenance.end(),
                    [](const Provenance& p) { return p.what == "prices" && p.detail == "a test"; }));
}

TEST_CASE("egress by destination: the longest prefix counts, and tiers are those of each destination") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  const char* names[] = {"aws:a", "aws:b", "gcp:c", "paris"};
  for (std::size_t i = 0; i < 4; ++i) scenario.platform.sites[i].name = names[i];
  const auto flat = [](double per_gb) {
    return std::vector<EgressTier>{{std::numeric_limits<double>::infinity(), per_gb / kGb}};
  };
  SitePrices aws;
  aws.egress = flat(0.09);
  aws.egress_to = {{"aws:", flat(0.02)}, {"g", flat(0.5)}, {"gcp:", flat(0.05)}};
  scenario.prices = Prices{"USD", "", {aws, aws, SitePrices{}, SitePrices{}}, {}};
  const auto egress = [&](const SiteTraffic& sent) {
    return site_cost(scenario, 0, 0, sent, 3600, 0).egress;
  };
  CHECK(close(egress({6 * kGb, {0, 1 * kGb, 2 * kGb, 3 * kGb}}), 1 * 0.02 + 2 * 0.05 + 3 * 0.09));
  CHECK(close(egress({6 * kGb}), 2 * (0.02 + 0.05 + 0.09)));  // to all alike
  CHECK(egress_by_destination(scenario.prices));
  // In a ring, all of a site's bytes go to the next one; both engines say so.
  scenario.strategy.ring_order = RingOrder::given;
  const double sent_gb = closed_form(scenario).sites[0].bytes_sent / kGb;
  CHECK(close(closed_form(scenario).cost->egress_cost, sent_gb * (0.02 + 0.05)));  // a to b, b to c
  scenario.strategy.collective = Collective::direct;
  CHECK(close(closed_form(scenario).cost->egress_cost, 2 * sent_gb * (0.02 + 0.05 + 0.09) / 3));
}

TEST_CASE("without prices and power there is no cost; with power alone there is only energy") {
  Scenario scenario = tests::ideal_scenario("diloco", 4);
  CHECK_FALSE(closed_form(scenario).cost.has_value());
  scenario.power = GpuPower{700, 0.2, 1.0};
  const RunReport report = closed_form(scenario);
  REQUIRE(report.cost.has_value());
  CHECK(report.cost->currency.empty());
  CHECK(*report.cost->energy_kwh > 0);
}
