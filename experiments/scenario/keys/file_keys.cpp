#include "experiments/scenario/keys/keys.hpp"

namespace fomoe::scenario {
namespace {

constexpr Key kPlatformFileKeys[] = {
    {"", "name", Kind::text, "", "", "of the platform", "\"eight-regions\""},
    {"", "source", Kind::text, "", "", "where the numbers come from, in one sentence",
     "\"iperf3 between our sites, 2025-03-01\""},
    {"", "measured", Kind::boolean, "false", "",
     "the rates and latencies in this file were measured, as the source says; fomoe probe writes it", "true"},
    {"", "paths_csv", Kind::text, "", "no measurements", "measured paths, relative to this file",
     "\"eight-regions.csv\""},

    {"site", "name", Kind::text, "", "", "of the site, as in the paths", "\"paris\""},
    {"site", "uplink", Kind::rate, "", "the largest measured rate out of the site", "all that the site sends",
     "\"10Gbps\""},
    {"site", "downlink", Kind::rate, "", "the largest measured rate into the site",
     "all that the site receives", "\"10Gbps\""},

    {"site", "region", Kind::text, "", "no backbone is shared", "whose backbones the site shares",
     "\"europe\""},
    {"site", "compute_factor", Kind::multiple, "1.0", "",
     "a step takes so many times as long here as on the scenario's GPU", "1.5", 1000},

    {"backbone", "from", Kind::text, "", "", "a region", "\"europe\""},
    {"backbone", "to", Kind::text, "", "", "another region", "\"america\""},
    {"backbone", "bandwidth", Kind::rate, "", "",
     "shared by all paths from the one region to the other, and as much back", "\"10Gbps\""},

    {"path", "from", Kind::text, "", "", "the sending site", "\"paris\""},
    {"path", "to", Kind::text, "", "", "the receiving site", "\"tokyo\""},
    {"path", "latency", Kind::latency, "", "", "one way", "\"110ms\""},
    {"path", "bandwidth", Kind::rate, "", "the measured rate, else only the sites' links count",
     "of this path alone", "\"5Gbps\""},

    {"default_path", "latency", Kind::latency, "", "", "one way, of every path that nothing else describes",
     "\"25ms\""},
    {"default_path", "bandwidth", Kind::rate, "", "only the sites' links count", "of every such path alone",
     "\"1Gbps\""},
};

constexpr Key kPriceFileKeys[] = {
    {"", "name", Kind::text, "", "", "of the list", "\"our contract\""},
    {"", "as_of", Kind::text, "", "", "the day of the prices", "\"2026-01-15\""},
    {"", "source", Kind::text, "", "", "where the prices come from, in one sentence",
     "\"contract of our site\""},

    {"gpu", "sites", Kind::text, "", "every site that no other [[gpu]] names",
     "how the names of its sites begin", "\"aws:\""},
    {"gpu", "on_demand", Kind::money, "", "not on offer", "one GPU for one hour, rented at will",
     "\"4.00USD\""},
    {"gpu", "spot", Kind::money, "", "not on offer", "one GPU for one hour that may be taken away",
     "\"1.60USD\""},
    {"gpu", "owned", Kind::money, "", "not on offer",
     "one GPU of one's own for one hour, depreciation and housing", "\"1.20USD\""},

    {"egress", "sites", Kind::text, "", "every site that no other [[egress]] names",
     "how the names of its sites begin", "\"aws:\""},
    {"egress", "up_to", Kind::size, "", "all beyond the tier before",
     "end of the tier, in bytes of one month", "\"10TB\""},
    {"egress", "per_gb", Kind::money, "", "", "10⁹ bytes that a site sends to another", "\"0.09USD\""},

    {"port", "sites", Kind::text, "", "every site that no other [[port]] names",
     "how the names of its sites begin", "\"aws:\""},
    {"port", "month", Kind::money, "", "", "dedicated links of one site for one month", "\"1600USD\""},

    {"electricity", "sites", Kind::text, "", "every site that no other [[electricity]] names",
     "how the names of its sites begin", "\"paris\""},
    {"electricity", "kwh", Kind::money, "", "", "one kWh, where GPUs are owned", "\"0.12USD\""},
};

}  // namespace

std::span<const Key> platform_file_keys() { return kPlatformFileKeys; }
std::span<const Key> price_file_keys() { return kPriceFileKeys; }

}  // namespace fomoe::scenario
