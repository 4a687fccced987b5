// Tests of price files and of money in scenarios.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/files/prices_file.hpp"
#include "experiments/text/units.hpp"
#include "tests/experiments/answer.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using nlohmann::json;

namespace {

const std::string kPricesTop = "name = \"p\"\nas_of = \"2026-01-15\"\nsource = \"a test\"\n";
const std::string kGpu = "[[gpu]]\non_demand = \"3.60USD\"\nspot = \"1.80USD\"\n";

costmodel::Prices read_prices(const std::string& toml, const std::string& pricing = "on_demand") {
  const Folder folder;
  write_all(folder / "p.toml", toml);
  platforms::Platform platform = platforms::uniform(3, 1, 1, 0);
  platform.sites[0].name = "aws:us-east-1";
  platform.sites[1].name = "aws:eu-west-1";
  platform.sites[2].name = "paris";
  return scenario::read_price_file(folder / "p.toml",
                                   std::vector<std::string>(platform.sites.size(), pricing), platform);
}

// Returns the message about the price file `toml`, from the file's name on, without its folder.
std::string price_complaint(const std::string& toml, const std::string& pricing = "on_demand") {
  try {
    (void)read_prices(toml, pricing);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return text.substr(text.find("p.toml"));
  }
  return "";
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(b); }

}  // namespace

TEST_CASE("money: a number and a currency") {
  CHECK(scenario::parse_money("2.50USD").amount == 2.5);
  CHECK(scenario::parse_money(" 1600 EUR ").currency == "EUR");
  CHECK(scenario::parse_money("0USD").amount == 0);  // an amount of zero is legal
  for (const char* wrong : {"2.50", "USD", "-1USD", "nanUSD", "2$", "2usd", "2USDollar"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(scenario::parse_money(wrong), scenario::QuantityError);
  }
}

TEST_CASE("power: watts") {
  CHECK(scenario::parse_quantity("700W", scenario::Quantity::power) == 700);
  CHECK(scenario::parse_quantity("1.2kW", scenario::Quantity::power) == 1200);
}

TEST_CASE(
    "price file: a row prices the sites whose names begin with its name, and the longest match counts") {
  const costmodel::Prices prices =
      read_prices(kPricesTop + kGpu +
                  "[[gpu]]\nsites = \"aws:\"\non_demand = \"7.20USD\"\n"
                  "[[egress]]\nsites = \"aws:\"\nup_to = \"10TB\"\nper_gb = \"0.09USD\"\n"
                  "[[egress]]\nsites = \"aws:\"\nper_gb = \"0.05USD\"\n"
                  "[[egress]]\nsites = \"aws:eu\"\nper_gb = \"0.02USD\"\n"
                  "[[port]]\nsites = \"paris\"\nmonth = \"1600USD\"\n"
                  "[[electricity]]\nkwh = \"0.36USD\"\n");
  CHECK(prices.currency == "USD");
  CHECK(prices.as_of == "2026-01-15");
  CHECK(close(prices.sites[0].gpu_price_per_s, 7.2 / 3600));
  CHECK(close(prices.sites[2].gpu_price_per_s, 3.6 / 3600));
  REQUIRE(prices.sites[0].egress.size() == 2);
  CHECK(prices.sites[0].egress[0].up_to_bytes == 10e12);
  CHECK(close(prices.sites[0].egress[0].price_per_byte, 0.09e-9));
  CHECK(close(prices.sites[0].egress[1].price_per_byte, 0.05e-9));
  REQUIRE(prices.sites[1].egress.size() == 1);
  CHECK(close(prices.sites[1].egress[0].price_per_byte, 0.02e-9));
  CHECK(prices.sites[2].egress.empty());
  CHECK(prices.sites[2].port_price_per_month == 1600);
  CHECK(prices.sites[0].port_price_per_month == 0);
  CHECK(close(prices.sites[0].energy_price_per_joule, 0.36 / 3.6e6));
  CHECK(prices.provenance.front().origin == Origin::assumed);
  CHECK(prices.provenance.front().detail == "p, as of 2026-01-15, on_demand GPUs, USD: a test");
}

TEST_CASE("price file: egress by destination, and a kind of price for each site") {
  const costmodel::Prices prices =
      read_prices(kPricesTop + kGpu +
                  "[[egress]]\nsites = \"aws:\"\nto = \"aws:\"\nper_gb = \"0.02USD\"\n"
                  "[[egress]]\nsites = \"aws:\"\nup_to = \"10TB\"\nper_gb = \"0.09USD\"\n"
                  "[[egress]]\nsites = \"aws:\"\nper_gb = \"0.05USD\"\n");
  REQUIRE(prices.sites[0].egress_to.size() == 1);
  CHECK(prices.sites[0].egress_to[0].sites == "aws:");
  CHECK(close(prices.sites[0].egress_to[0].tiers[0].price_per_byte, 0.02e-9));
  REQUIRE(prices.sites[0].egress.size() == 2);
  const Folder folder;
  write_all(folder / "p.toml", kPricesTop + kGpu + "[[gpu]]\nsites = \"site-0\"\nowned = \"1.20USD\"\n");
  const costmodel::Prices mixed =
      scenario::read_price_file(folder / "p.toml", {"owned", "spot"}, platforms::uniform(2, 1, 1, 0));
  CHECK(close(mixed.sites[0].gpu_price_per_s, 1.2 / 3600));
  CHECK(close(mixed.sites[1].gpu_price_per_s, 1.8 / 3600));
  CHECK(mixed.sites[0].pricing == costmodel::Pricing::owned);
  CHECK(mixed.provenance.front().detail.find("owned GPUs at site-0; spot GPUs at site-1") !=
        std::string::npos);
}

TEST_CASE("price file: on demand, spot or owned, and no price if none is given") {
  CHECK(close(read_prices(kPricesTop + kGpu, "spot").sites[0].gpu_price_per_s, 1.8 / 3600));
  CHECK(
      price_complaint(kPricesTop + kGpu, "owned") ==
      "p.toml:1: gpu.owned: got no price for the site \"aws:us-east-1\"; expected a [[gpu]] whose sites is a "
      "prefix of this name, or one without sites, with owned, or pricing = \"spot\" in a [[site]] of the "
      "scenario; for "
      "example [[gpu]] with owned = \"2.50USD\"");
}

TEST_CASE("price file: every mistake is reported with its line") {
  const std::string tiers = "[[egress]]\nup_to = \"10TB\"\nper_gb = \"0.09USD\"\n";
  CHECK(
      price_complaint(kPricesTop + kGpu + tiers + "[[egress]]\nup_to = \"5TB\"\nper_gb = \"0.05USD\"\n") ==
      "p.toml:11: egress.up_to: got a tier whose up_to does not exceed that of the tier before it; expected "
      "tiers of the same sites and destinations in ascending order, the last one without up_to; for example "
      "up_to = \"10TB\"");
  CHECK(price_complaint(kPricesTop + kGpu + "[[port]]\nmonth = \"1EUR\"\n") ==
        "p.toml:8: port.month: got EUR; expected USD, the currency of the prices above; for example month = "
        "\"1600USD\"");
  CHECK(price_complaint(kPricesTop + kGpu + kGpu)
            .starts_with("p.toml:7: gpu.sites: got \"\" twice; expected each prefix once"));
  CHECK(price_complaint("name = \"p\"\nsource = \"s\"\n" + kGpu)
            .starts_with("p.toml:1: as_of: got nothing; expected a string"));
  CHECK(price_complaint(kPricesTop + "[[gpus]]\non_demand = \"1USD\"\n").find("did you mean") !=
        std::string::npos);
}

TEST_CASE("the example price file is read, marked as assumed, and prices the eight regions") {
  const json report = answer(
      "fomoe simulate experiments/scenarios/eight-regions.toml --set compute.step_time=420ms --engine "
      "closed-form "
      "--set prices.file=../data/prices-example.toml --set energy.gpu_power=700W --set energy.idle_share=0.2 "
      "--output -");
  const json& cost = report["cost"];
  const double hours = report["wall_clock_s"].get<double>() / 3600;
  CHECK(cost["currency"] == "USD");
  CHECK(close(cost["gpu_cost"].get<double>(), 8 * 4.0 * hours));
  CHECK(cost["egress_cost"].get<double>() > 0);
  CHECK(close(cost["cost_total"].get<double>(),
              cost["gpu_cost"].get<double>() + cost["egress_cost"].get<double>()));
  CHECK(cost["energy_kwh"].get<double>() > 0);
  CHECK(report["provenance"].dump().find("example, as of 2026-01-15") != std::string::npos);
  CHECK(report["scenario"]["prices"]["sites"].size() == 8);
}

TEST_CASE("another price of a GPU beside a price file leaves egress as it is") {
  const std::string command =
      "fomoe simulate experiments/scenarios/four-regions.toml --engine closed-form --output -";
  const json before = answer(command), after = answer(command + " --set prices.gpu_hour=3USD");
  const double hours = after["wall_clock_s"].get<double>() / 3600;
  CHECK(close(after["cost"]["gpu_cost"].get<double>(), 4 * 8 * 3.0 * hours));
  CHECK(after["cost"]["egress_cost"] == before["cost"]["egress_cost"]);
  CHECK(after["cost"]["egress_cost"].get<double>() > 0);
}

TEST_CASE("the price file of AWS: each region's price to other regions and to the internet") {
  // Skyplane's table of AWS's prices: us-east-1 to us-east-2 0.01, us-east-2 to eu-central-1 0.02, and
  // eu-central-1 to the internet 0.09; sa-east-1 to any region 0.138. A ring of the given order.
  const auto egress_per_gb = [](const std::string& sites) {
    const json report = answer(
        "fomoe simulate tests/ideal/two-sites.toml --engine closed-form --set workload.tokens=1e6 "
        "--set platform.file=../../platforms/cloud-regions.toml --unset platform.sites "
        "--unset platform.bandwidth --unset platform.latency --set platform.use_sites=" +
        sites + " --set prices.file=../../experiments/data/prices-aws-2026-06.toml --output -");
    double bytes = 0;
    for (const json& site : report["sites"]) bytes += site["bytes_sent"].get<double>();
    return report["cost"]["egress_cost"].get<double>() / bytes * 1e9;
  };
  CHECK(close(egress_per_gb("aws:us-east-1,aws:us-east-2"), 0.01));
  CHECK(close(egress_per_gb("aws:us-east-2,aws:eu-central-1"), 0.02));
  CHECK(close(egress_per_gb("aws:us-east-1,aws:sa-east-1"), (0.02 + 0.138) / 2));
  CHECK(close(egress_per_gb("aws:ap-southeast-2,aws:ap-south-1"), (0.098 + 0.086) / 2));
}

TEST_CASE(
    "simulate: prices of the scenario appear in text, CSV and JSON, and an override displaces the file") {
  const std::string base =
      "fomoe simulate tests/ideal/two-sites.toml --set prices.gpu_hour=3.60USD --set "
      "prices.egress_per_gb=0.05USD ";
  const json report = answer(base + "--output -");
  const double seconds = report["wall_clock_s"].get<double>();
  CHECK(close(report["cost"]["gpu_cost"].get<double>(),
              2 * seconds / 1000));  // 3.60 USD per hour is 0.001 per second
  const double sent_gb = report["sites"][0]["bytes_sent"].get<double>() / 1e9;
  CHECK(std::abs(report["cost"]["egress_cost"].get<double>() / (2 * sent_gb * 0.05) - 1) < 1e-9);
  const Ran text = run_in(source_dir(), base);
  CHECK(text.out.find("cost ") != std::string::npos);
  CHECK(text.out.find("prices without a date") != std::string::npos);
  CHECK(text.out.find("  egress") != std::string::npos);
}

TEST_CASE("simulate: extra traffic is sent, reported and written to the scenario's copy in the report") {
  const json without = answer("fomoe simulate tests/ideal/two-sites.toml --output -");
  const json with = answer(
      "fomoe simulate tests/ideal/two-sites.toml --set traffic.data_site=site-0 --set "
      "traffic.data_bytes_per_token=1000 --output -");
  CHECK(with["scenario"]["traffic"]["data_site"] == "site-0");
  // The other site reads half of the tokens, at 1000 B each.
  const double tokens = with["tokens"].get<double>();
  CHECK(std::abs(
            (with["sites"][0]["bytes_sent"].get<double>() - without["sites"][0]["bytes_sent"].get<double>()) /
                (tokens / 2 * 1000) -
            1) < 1e-9);
  CHECK(with["sites"][1]["bytes_sent"] == without["sites"][1]["bytes_sent"]);
}
