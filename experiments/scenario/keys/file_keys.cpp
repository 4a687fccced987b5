#include "experiments/scenario/keys/keys.hpp"

namespace fomoe::scenario {
namespace {

constexpr KeyMember rates = {.names = [] { return std::vector<std::string>{"link", "payload"}; }};

constexpr KeyMember carriers = {.names = [] { return std::vector<std::string>{"line", "machine"}; }};

constexpr Key kPlatformFileKeys[] = {
    {"name", Kind::text, "", "", "name of the platform", "\"eight-regions\""},
    {"source", Kind::text, "", "", "origin of the numbers, in one sentence",
     "\"iperf3 between our sites, 2025-03-01\""},
    {"measured", Kind::boolean, "false", "",
     "whether the rates and latencies in this file were measured; `fomoe probe` sets it", "true"},
    {"connections", Values(Kind::count, 65536), "", "unknown",
     "number of connections between two sites that reached the measured rates together; an answer for fewer "
     "says what it means",
     "64"},
    {"rates", Kind::choice, "\"link\"", "",
     "what the rates in this file are: those of the links, of which headers take a part, or those at which "
     "TCP payload was measured (iperf3, `fomoe probe`)",
     "\"payload\"", rates},
    {"rates_of", Kind::choice, "\"line\"", "",
     "what the rates in this file and in paths_csv are: those of one machine at each end, which "
     "platform.gateways multiplies, or those of the line of a whole site",
     "\"machine\"", carriers},
    {"mtu", kPacketSize, "\"1500B\"", "",
     "largest packet on all paths, with the headers of IP and TCP; jumbo frames have 9000 bytes",
     "\"9000B\""},
    {"paths_csv", Kind::text, "", "no measurements", "CSV file of measured paths, relative to this file",
     "\"eight-regions.csv\""},

    {"site.name", Kind::text, "", "", "name of the site, as used in paths", "\"paris\""},
    {"site.uplink", Kind::rate, "", "the largest measured rate out of the site",
     "limit of the total rate that the site sends", "\"10Gbps\""},
    {"site.downlink", Kind::rate, "", "the largest measured rate into the site",
     "limit of the total rate that the site receives", "\"10Gbps\""},

    {"site.region", Kind::text, "", "none", "region of the site, for [[backbone]]", "\"europe\""},
    {"site.rates_of", Kind::choice, "", "rates_of of the file; line if uplink and downlink are given here",
     "what uplink and downlink are: the rates of one of the site's machines, or of its line", "\"line\"",
     carriers},
    {"site.compute_factor", Values(Kind::multiple, 1000), "1.0", "",
     "step time at this site as a multiple of the step time in the scenario", "1.5"},

    {"site.queue", Kind::latency, "", "no queue",
     "longest time that data may wait in the queue of the site's uplink; the answer states what this may "
     "cost",
     "\"50ms\""},
    {"site.out_links", Kind::words, "", "none",
     "names of the [[link]]s through which all data leave the site, besides its uplink", "[\"office up\"]"},
    {"site.in_links", Kind::words, "", "none",
     "names of the [[link]]s through which all data reach the site, besides its downlink",
     "[\"office down\"]"},

    {"link.name", Kind::text, "", "", "name of a link that several routes share, in one direction",
     "\"office up\""},
    {"link.bandwidth", Kind::rate, "", "", "total rate of all flows on the link", "\"800Mbps\""},
    {"link.per_flow", Kind::boolean, "false", "",
     "whether the bandwidth is a limit of each single connection instead of a total", "true"},

    {"backbone.from", Kind::text, "", "", "region at one end", "\"europe\""},
    {"backbone.to", Kind::text, "", "", "region at the other end; the same for a backbone inside a region",
     "\"america\""},
    {"backbone.bandwidth", Kind::rate, "", "",
     "bandwidth in each direction, shared by all paths between the two regions", "\"10Gbps\""},

    {"path.from", Kind::text, "", "", "sending site", "\"paris\""},
    {"path.to", Kind::text, "", "", "receiving site", "\"tokyo\""},
    {"path.latency", Kind::latency, "", "", "one-way latency", "\"110ms\""},
    {"path.bandwidth", Kind::rate, "",
     "the measured rate; without a measurement, only the sites' links limit the path",
     "bandwidth of this path alone", "\"5Gbps\""},
    {"path.connection_bandwidth", Kind::rate, "",
     "unknown: only the terms of [network_model] limit a connection",
     "rate that one connection reached on this path; limits a flow to network_model.streams times this rate",
     "\"180Mbps\""},
    {"path.links", Kind::words, "", "none",
     "names of the [[link]]s that the path shares with other paths, besides those of its sites",
     "[\"transit east\"]"},

    {"default_path.latency", Kind::latency, "", "",
     "one-way latency of every path that is not described otherwise", "\"25ms\""},
    {"default_path.bandwidth", Kind::rate, "", "only the sites' links limit the paths",
     "bandwidth of each of these paths alone", "\"1Gbps\""},
};

constexpr Key kPriceFileKeys[] = {
    {"name", Kind::text, "", "", "name of the price list", "\"our contract\""},
    {"as_of", Kind::text, "", "", "date of the prices", "\"2026-01-15\""},
    {"source", Kind::text, "", "", "origin of the prices, in one sentence", "\"contract of our site\""},

    {"gpu.sites", Kind::text, "", "every site that no other [[gpu]] names",
     "prefix of the names of the sites", "\"aws:\""},
    {"gpu.on_demand", Kind::money, "", "not offered", "price of one on-demand GPU for one hour",
     "\"4.00USD\""},
    {"gpu.spot", Kind::money, "", "not offered", "price of one spot GPU for one hour; it may be preempted",
     "\"1.60USD\""},
    {"gpu.owned", Kind::money, "", "not offered",
     "cost of one owned GPU for one hour: depreciation and housing", "\"1.20USD\""},

    {"egress.sites", Kind::text, "", "every site that no other [[egress]] names",
     "prefix of the names of the sites", "\"aws:\""},
    {"egress.to", Kind::text, "", "every site that no other [[egress]] of the same sites names",
     "prefix of the names of the receiving sites: those of the same provider, for example", "\"aws:\""},
    {"egress.up_to", Kind::size, "", "no upper limit", "upper limit of the tier, in bytes per month",
     "\"10TB\""},
    {"egress.per_gb", Kind::money, "", "", "price of 10⁹ bytes that a site sends to another site",
     "\"0.09USD\""},

    {"port.sites", Kind::text, "", "every site that no other [[port]] names",
     "prefix of the names of the sites", "\"aws:\""},
    {"port.month", Kind::money, "", "", "price of a site's dedicated links for one month", "\"1600USD\""},

    {"electricity.sites", Kind::text, "", "every site that no other [[electricity]] names",
     "prefix of the names of the sites", "\"paris\""},
    {"electricity.kwh", Kind::money, "", "",
     "price of one kWh, which [energy] needs; leave it out where the price of a GPU includes its power",
     "\"0.12USD\""},
};

constexpr Key kGridFileKeys[] = {
    {"scenario", Kind::text, "", "", "scenario file of all runs, relative to this file",
     "\"../proxies/small-experts.toml\""},
    {"set", Kind::words, "", "nothing is overridden", "keys of the scenario and their values in all runs",
     "[\"trainer.learning_rate=0.004\"]"},
    {"vary", Kind::words, "", "none", "keys and their values; every run is made with each combination",
     "[\"seed=42,123,456\"]"},

    {"runs.set", Kind::words, "", "nothing is overridden", "keys and their values in these runs",
     "[\"strategy.method=diloco\"]"},
    {"runs.vary", Kind::words, "", "none", "keys and their values; one run is made with each combination",
     "[\"strategy.local_steps=8,32,128\", \"platform.sites=4,8\"]"},
};

}  // namespace

std::span<const Key> grid_file_keys() { return kGridFileKeys; }
std::span<const Key> platform_file_keys() { return kPlatformFileKeys; }
std::span<const Key> price_file_keys() { return kPriceFileKeys; }

}  // namespace fomoe::scenario
