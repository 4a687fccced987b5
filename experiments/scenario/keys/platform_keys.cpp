// Keys of the network between the sites.
#include <algorithm>
#include <utility>
#include <vector>

#include "experiments/scenario/keys/members.hpp"
#include "platforms/each_path.hpp"

namespace fomoe::scenario {
namespace {

/// Whether the platform has equal sites and links, which no file or trace describes.
bool equal_sites(const platforms::Platform& platform) {
  return platform.name == "uniform" && platform.changes.empty() && !platforms::links_differ(platform);
}

bool set_sites(Scenario& scenario, double value) {
  platforms::Platform& platform = scenario.platform;
  const platforms::Site first = platform.sites.front();
  if (!equal_sites(platform) || !scenario.site_compute.empty() || !scenario.workload.batch_shares.empty())
    return false;
  if (!scenario.strategy.routing_counts.empty()) return false;
  if (scenario.failures && !scenario.failures->outages.empty()) return false;
  const costmodel::ExtraTraffic& extra = scenario.traffic;
  if (extra.data_site || extra.checkpoint_site || extra.rejoin_site) return false;
  if (scenario.prices && !scenario.prices->of_all_sites) return false;
  const auto count = static_cast<int>(value);
  const double latency_s = platform.paths.at(0, 0).latency_s;
  const std::optional<platforms::Store> store = platform.store;
  const double packet_bytes = platform.packet_bytes;
  platform = platforms::uniform(count, first.uplink_bytes_per_s, first.downlink_bytes_per_s, latency_s);
  platform.store = store;
  platform.packet_bytes = packet_bytes;
  for (platforms::Site& site : platform.sites) site.queue_s = first.queue_s;
  if (scenario.prices) {
    const costmodel::SitePrices price = scenario.prices->sites.front();
    scenario.prices->sites.assign(static_cast<std::size_t>(count), price);
  }
  return true;
}
constexpr KeyMember sites = {.set = set_sites, .has_rules = true};

/// Sets the rates of all ports in one or both directions.
template <bool Up, bool Down>
bool set_ports(Scenario& scenario, double value) {
  if (!equal_sites(scenario.platform)) return false;
  for (platforms::Site& site : scenario.platform.sites) {
    if (Up) site.uplink_bytes_per_s = value;
    if (Down) site.downlink_bytes_per_s = value;
  }
  return true;
}
template <bool Up, bool Down>
constexpr KeyMember ports = {.set = set_ports<Up, Down>, .has_rules = true};

bool set_latency(Scenario& scenario, double value) {
  if (!equal_sites(scenario.platform)) return false;
  scenario.platform.paths.change_all([&](platforms::Path& path) { path.latency_s = value; });
  return true;
}
constexpr KeyMember latency = {.set = set_latency, .has_rules = true};

bool set_queue(Scenario& scenario, double value) {
  for (platforms::Site& site : scenario.platform.sites) site.queue_s = value;
  return true;
}
constexpr KeyMember queue = {.set = set_queue};

bool set_gateways(Scenario& scenario, double value) {
  const std::vector<platforms::Site>& own = scenario.platform.sites;
  if (std::any_of(own.begin(), own.end(), [](const platforms::Site& site) { return site.own_machines; }))
    return false;
  if (value > 1)
    scenario.platform = platforms::with_machines(std::move(scenario.platform),
                                                 std::vector<int>(own.size(), static_cast<int>(value)));
  return true;
}
constexpr KeyMember gateways = {.set = set_gateways, .has_rules = true, .neutral = "1"};

bool set_rate_factor(Scenario& scenario, double value) {
  if (value != 1) scenario.platform = platforms::scaled_bandwidth(std::move(scenario.platform), value);
  return true;
}
constexpr KeyMember rate_factor = {.set = set_rate_factor, .has_rules = true, .neutral = "1"};

/// A member of the platform's store.
template <auto Field>
constexpr KeyMember of_store = {.set = [](Scenario& scenario, double value) {
  if (!scenario.platform.store) return false;
  assign((*scenario.platform.store).*Field, value);
  return true;
}};
/// A store that combines nothing has no result.
constexpr KeyMember result_share = {.set = [](Scenario& scenario, double value) {
  if (!scenario.platform.store || !scenario.platform.store->aggregates) return false;
  scenario.platform.store->result_share = value;
  return true;
}};

constexpr Key kPlatformKeys[] = {
    {"file", Kind::text, "", "preset is given, or all sites are equal",
     "platform file with named sites and paths, relative to this file",
     "\"../../platforms/eight-regions.toml\""},
    {"preset", Kind::choice, "", "file is given, or all sites are equal",
     "predefined platform; consumer: sites with 100 Mb/s down, 20 Mb/s up and 15 ms; two-continents: sites "
     "with 10 Gb/s and 5 ms, and 10 Gb/s and 40 ms between the continents",
     "\"two-continents\"", one_of<"consumer", "two-continents">},
    {"sites", Values(Kind::count, kMaxSites), "", "all sites of the file",
     "number of sites; with file, the first sites of the file; with generate, the number of generated sites",
     "4", sites, counts},
    {"use_sites", Kind::text, "", "all sites of the file, or the first ones if sites is given",
     "names of the file's sites to use, separated by commas; * stands for any characters, as in aws:us-*",
     "\"aws:us-east-1, azure:eastus\""},
    {"generate", Kind::boolean, "false", "",
     "whether sites are generated at random, each as a variation of one of the file's sites", "true"},
    {"rate_spread", Kind::share, "0.2", "",
     "standard deviation of the logarithm of each generated rate; only with generate", "0.2"},
    {"gateways", Values(Kind::count, 4096), "1", "",
     "number of machines that carry a site's traffic; they have connections of their own, and multiply rates "
     "that "
     "are those of one machine",
     "4", gateways, links},
    {"rates_of", Kind::choice, "", "as the platform file says, otherwise line",
     "what the rates are: those of one machine, which gateways multiplies, or those of a site's line",
     "\"machine\"", one_of<"line", "machine">},
    {"trace", Kind::text, "", "rates and latencies are constant",
     "CSV file of rates and latencies over time, relative to this file",
     "\"../data/link-trace-example.csv\""},
    {"trace_period", Kind::duration, "", "the trace is not repeated", "period after which the trace repeats",
     "\"24h\""},
    {"trace_start", Kind::latency, "\"0s\"", "",
     "time in the trace at which the run starts, for example a time of day", "\"18h\""},
    {"rate_factor", Values(Kind::multiple, 1e6), "1.0", "",
     "factor on every link rate, to study faster or slower links", "10", rate_factor, links},
    {"bandwidth", Kind::rate, "", "uplink and downlink are given",
     "rate of each site's link, in both directions", "\"1Gbps\"", ports<true, true>, links},
    {"uplink", Kind::rate, "", "the value of bandwidth",
     "rate from each site to the network, if it differs from bandwidth", "\"500Mbps\"", ports<true, false>,
     links},
    {"downlink", Kind::rate, "", "the value of bandwidth",
     "rate from the network to each site, if it differs from bandwidth", "\"1Gbps\"", ports<false, true>,
     links},
    {"latency", Kind::latency, "", "from the file or the preset", "one-way latency between two sites",
     "\"25ms\"", latency, links},
    {"queue", Kind::latency, "", "no queue, or those of the file",
     "longest time that data may wait in the queue of a site's uplink; the answer states what this may cost",
     "\"50ms\"", queue, links},
    {"mtu", kPacketSize, "", "as the platform file says, otherwise 1500 bytes",
     "largest packet on all paths, with the headers of IP and TCP; jumbo frames have 9000 bytes. With host = "
     "\"linux\", it decides the size of segments and first windows, and what headers take of a link",
     "\"9000B\""},
    {"platform.store.uplink", Kind::rate, "", "no limit: the links of the sites decide",
     "rate at which the store sends to all sites together, with collective = \"store\"", "\"100Gbps\"",
     of_store<&platforms::Store::uplink_bytes_per_s>, links},
    {"platform.store.downlink", Kind::rate, "", "no limit: the links of the sites decide",
     "rate at which the store receives from all sites together", "\"100Gbps\"",
     of_store<&platforms::Store::downlink_bytes_per_s>, links},
    {"platform.store.latency", Kind::latency, "\"25ms\"", "",
     "one-way latency between the store and each site; the default is an assumption", "\"10ms\"",
     of_store<&platforms::Store::latency_s>, links},
    {"platform.store.aggregates", Kind::boolean, "true", "",
     "whether the store, or an aggregator beside it, combines what the sites upload, so that each site "
     "downloads one result; otherwise each site downloads what the others have uploaded",
     "false", of_store<&platforms::Store::aggregates>},
    {"platform.store.result_share", Kind::share, "", "all values that any site has sent",
     "share of the values that a result of sparse payloads has, with aggregates: 0.015625 makes a result as "
     "large as a payload of sparse_loco",
     "0.015625", result_share, counts},
    {"platform.store.million_requests", Kind::money, "", "free",
     "price of a million requests to the store, each of which puts or gets one object; with [prices]",
     "\"4.50USD\""},
    {"platform.store.egress_per_gb", Kind::money, "", "free",
     "price of 10⁹ bytes that sites download from the store; with [prices]", "\"0.09USD\""},
};

}  // namespace

std::vector<Key> platform_keys() { return keys_in("platform", kPlatformKeys); }

}  // namespace fomoe::scenario
