// Keys of prices.
#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {

constexpr Key kPricesKeys[] = {
    {"file", Kind::text, "", "prices are given here, or there are none", "price file, relative to this file",
     "\"../data/prices-example.toml\""},
    {"pricing", Kind::choice, "\"on_demand\"", "", "kind of GPU price to take from the file", "\"spot\"",
     one_of<"on_demand", "spot", "owned">},
    {"gpu_hour", Kind::money, "", "from the file", "price of one GPU for one hour", "\"2.50USD\""},
    {"egress_per_gb", Kind::money, "", "from the file, or free",
     "price of 10⁹ bytes that a site sends to another site", "\"0.08USD\""},
    {"port_month", Kind::money, "", "from the file, or free",
     "price of a site's dedicated links for one month; each month that has begun is charged", "\"1600USD\""},
    {"kwh", Kind::money, "", "from the file, or included in the GPU's price",
     "price of one kWh of electricity, with [energy]", "\"0.12USD\""},
    {"as_of", Kind::text, "", "from the file, or not stated", "date of the prices", "\"2026-01-15\""},
};

std::vector<Key> prices_keys() { return keys_in("prices", kPricesKeys); }

}  // namespace fomoe::scenario
