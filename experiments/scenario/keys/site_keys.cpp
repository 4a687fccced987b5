// Keys of a [[site]]; it may also have most keys of [compute].
#include <iterator>

#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {

constexpr Key kSiteKeys[] = {
    {"name", Kind::text, "", "",
     "site whose GPUs or step times differ from [compute], or a pattern such as aws:*; the table may have "
     "any key of [compute] except step_variation, draw_samples and those of stragglers",
     "\"site-1\""},
    {"batch_share", Values(Kind::multiple, 1e6), "1", "",
     "part of the batch that this site processes, relative to the parts of the other sites", "0.5"},
    {"bandwidth", Kind::rate, "", "as the platform says", "rate of this site's line, in both directions",
     "\"20Gbps\""},
    {"uplink", Kind::rate, "", "bandwidth, or as the platform says", "rate from this site to the network",
     "\"10Gbps\""},
    {"downlink", Kind::rate, "", "bandwidth, or as the platform says", "rate from the network to this site",
     "\"20Gbps\""},
    {"gateways", Values(Kind::count, 4096), "", "platform.gateways",
     "number of machines that carry this site's traffic", "1"},
    {"streams", Values(Kind::count, 65536), "", "network_model.streams",
     "number of TCP connections of each flow that a machine of this site sends", "8"},
    {"pricing", Kind::choice, "", "prices.pricing",
     "how this site's GPUs are paid for: the kind of price in the file; owned GPUs are not preempted",
     "\"owned\"", one_of<"on_demand", "spot", "owned">},
    {"gpu_hour", Kind::money, "", "as [prices] says", "price of one GPU of this site for one hour",
     "\"1.20USD\""},
    {"egress_per_gb", Kind::money, "", "as [prices] says",
     "price of 10⁹ bytes that this site sends to another site", "\"0USD\""},
    {"port_month", Kind::money, "", "as [prices] says", "price of this site's dedicated links for one month",
     "\"1600USD\""},
    {"kwh", Kind::money, "", "as [prices] says",
     "price of one kWh of electricity at this site, with [energy]", "\"0.12USD\""},
    {"site_mtbf", Kind::duration, "", "failures.site_mtbf", "mean time between failures of this site",
     "\"30d\""},
    {"link_mtbf", Kind::duration, "", "failures.link_mtbf", "mean time between failures of this site's link",
     "\"90d\""},
    {"preemptions_per_day", Values(Kind::multiple, 1e4), "",
     "failures.preemptions_per_day, or none if pricing is owned",
     "mean number of preemptions of this site per day", "0.5"},
    {"detection_time", Kind::latency, "", "failures.detection_time",
     "time until a failure of this site is noticed", "\"30s\""},
    {"restart_time", Kind::latency, "", "failures.restart_time",
     "time that this site needs to restart, without the transfer of its training state", "\"10min\""},
};

constexpr Key kPathKeys[] = {
    {"path.from", Kind::text, "", "", "sending site of a path whose rate or latency the scenario changes",
     "\"site-0\""},
    {"path.to", Kind::text, "", "", "receiving site", "\"site-1\""},
    {"path.bandwidth", Kind::rate, "", "as the platform says", "rate of this path alone, in one direction",
     "\"5Gbps\""},
    {"path.latency", Kind::latency, "", "as the platform says", "one-way latency of this path", "\"45ms\""},
};

std::vector<Key> site_keys() {
  std::vector<Key> keys = keys_in("site", kSiteKeys);
  keys.insert(keys.end(), std::begin(kPathKeys), std::end(kPathKeys));
  return keys;
}

}  // namespace fomoe::scenario
