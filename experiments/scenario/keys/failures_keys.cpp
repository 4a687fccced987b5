// Keys of failures and of checkpoints.
#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {
namespace {

using costmodel::Failures;

/// Sites with values of their own, or owned GPUs, need the reader.
bool sites_alike(const Scenario& scenario) { return !scenario.failures || scenario.failures->sites.empty(); }

bool set_preemptions(Scenario& scenario, double per_day) {
  const bool known = scenario.failures && (!scenario.prices || scenario.prices->of_all_sites);
  return member<&Failures::preemptions_per_s, sites_alike>.set(scenario, per_day / 86400) && known;
}
constexpr KeyMember preemptions = {.set = set_preemptions, .get = member<&Failures::preemptions_per_s>.get};

constexpr Key kFailuresKeys[] = {
    {"site_mtbf", Kind::duration, "", "sites do not fail",
     "mean time between failures of one site, including all of its nodes", "\"7d\"",
     member<&Failures::site_mtbf_s, sites_alike>, values, "site_mtbf_s"},
    {"link_mtbf", Kind::duration, "", "links do not fail", "mean time between failures of one site's link",
     "\"30d\"", member<&Failures::link_mtbf_s, sites_alike>, values, "link_mtbf_s"},
    {"preemptions_per_day", Values(Kind::multiple, 1e4), "", "no site is preempted",
     "mean number of preemptions per day of one site of spot instances; each costs the same as a failure",
     "0.5", preemptions, values, "preemptions_per_s"},
    {"detection_time", Kind::latency, "\"30s\"", "", "time until a failure is noticed", "\"30s\"",
     member<&Failures::detection_s, sites_alike>, values, "detection_s"},
    {"restart_time", Kind::latency, "\"10min\"", "",
     "time that a site needs to restart, until it can read its checkpoint or get the training state of "
     "another site",
     "\"10min\"", member<&Failures::restart_s, sites_alike>, values, "restart_s"},
    {"link_repair", Kind::latency, "\"10min\"", "", "time until a failed link is repaired", "\"1h\"",
     member<&Failures::link_repair_s>, values, "link_repair_s"},
    {"links_stay_dead", Kind::boolean, "false", "", "whether a failed link is never repaired", "true"},
    {"checkpoint_rounds", Values(Kind::count, 1e12), "", "checkpoint_time, or the recommended interval",
     "number of rounds between two checkpoints", "10", member<&Failures::checkpoint_rounds>, values},
    {"checkpoint_time", Kind::duration, "", "checkpoint_rounds, or the recommended interval",
     "time between two checkpoints, rounded to whole rounds", "\"1h\"",
     member<&Failures::checkpoint_interval_s>, values, "checkpoint_interval_s"},
    {"checkpoint_cost", Kind::latency, "", "bytes of a site's training state ÷ storage_bandwidth",
     "time for which all sites stop for a checkpoint; without storage_bandwidth, reading it takes as long",
     "\"20s\"", member<&Failures::checkpoint_s>, values, "checkpoint_s"},
    {"storage_bandwidth", Kind::rate, "", "bytes of a site's training state ÷ checkpoint_cost",
     "rate at which a site writes its training state to its storage and reads it again; checkpoint_cost, if "
     "given, replaces the time of writing",
     "\"2GBps\"", member<&Failures::storage_bytes_per_s>, values, "storage_bytes_per_s"},
    {"policy", Kind::choice, "\"wait\"", "",
     "reaction to a failed site: wait for it and restart from the checkpoint, or drop it until it returns",
     "\"drop\"", member<&Failures::policy>},
    {"timeout", Kind::latency, "", "the time-out that the report recommends",
     "time for which the other sites wait for a lost site, with policy = \"drop\"", "\"2min\"",
     member<&Failures::timeout_s>, values, "timeout_s"},
    {"outages", Kind::words, "", "none",
     "outages at given times, which the simulation executes, each as \"SITE at TIME for TIME\": when the "
     "site stops, and after how long it is back without its training state",
     "[\"site-1 at 10min for 3min\"]"},
    {"samples", Values(Kind::count, 1e6), "1000", "", "number of random samples of the run", "1000",
     member<&Failures::samples>, values},
};

}  // namespace

std::vector<Key> failures_keys() { return keys_in("failures", kFailuresKeys); }

}  // namespace fomoe::scenario
