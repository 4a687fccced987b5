#include "costmodel/compose/check.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string>
#include <variant>

#include "costmodel/compose/composition.hpp"
#include "costmodel/compute/compute_times.hpp"
#include "costmodel/compute/site_times.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

// Each site holds experts of each layer: it has a model of its own, and the copies of a layer go round.
void check_overlap(const Scenario& scenario) {
  const std::int64_t sites = scenario.sites(), experts = scenario.model.experts;
  const int overlap = scenario.strategy.expert_overlap;
  const std::int64_t least = (sites + experts - 1) / experts;
  if (overlap >= least && overlap <= sites) return;
  std::string expected = std::to_string(least) + " to " + std::to_string(sites) + " sites";
  if (least > 1)
    expected += ", so that each of the " + std::to_string(sites) + " sites holds at least one of the " +
                std::to_string(experts) + " experts of a layer";
  throw InputError("strategy.expert_overlap", std::to_string(overlap), expected,
                   std::to_string(overlap < least ? least : sites));
}

// Fragments consist of whole layers and take turns within a round of several steps. Each fragment must be
// merged before it is sent again.
void check_overlapping(const Scenario& scenario, const Method& method) {
  const Strategy& strategy = scenario.strategy;
  if (has_axis(method, "fragments")) {
    const bool by_steps = !method.every_step;
    std::int64_t most = std::max<std::int64_t>(1, scenario.model.layers);
    if (by_steps) most = std::min(most, strategy.local_steps);
    if (strategy.fragments > most) {
      std::string expected =
          "at most one fragment for each of the " + std::to_string(scenario.model.layers) + " layers";
      if (by_steps)
        expected +=
            " and at most one for each of the " + std::to_string(strategy.local_steps) + " local steps";
      throw InputError("strategy.fragments", std::to_string(strategy.fragments), expected,
                       std::to_string(most));
    }
  }
  if (has_axis(method, "overlap_steps") && strategy.overlap_steps > strategy.local_steps) {
    throw InputError("strategy.overlap_steps", std::to_string(strategy.overlap_steps),
                     "at most " + std::to_string(strategy.local_steps) +
                         ", the number of local steps between two transfers of the same fragment",
                     std::to_string(strategy.local_steps));
  }
}

// Top-k keeps the largest elements, which is correct for differences, but not for parameters or moments.
void check_compression(const Scenario& scenario, const Method& method) {
  const Strategy& strategy = scenario.strategy;
  if (!strategy.wire.sparse()) return;
  const bool sends_differences =
      has_axis(method, "compression") &&
      (!has_axis(method, "outer_optimizer") || outer_steps_of(strategy.outer_optimizer) > 0);
  if (sends_differences) return;
  throw InputError(
      "strategy.compression",
      "top_k with " + std::string(method.name) +
          (has_axis(method, "compression")
               ? std::string(" and outer_optimizer ") + to_string(strategy.outer_optimizer)
               : ""),
      "a method that sends gradients or pseudo-gradients (in `fomoe list methods`, a method that is "
      "changed by compression) and an outer optimiser that uses them (nesterov, adam, yogi)",
      "method = \"sparse_loco\"");
}

void check_affinity(const Scenario& scenario, const Method& method) {
  const RoutingCounts& counts = scenario.strategy.routing_counts;
  if (scenario.strategy.placement != PlacementKind::affinity || !counts.empty()) return;
  if (!has_axis(method, "placement")) return;
  throw InputError("strategy.placement", "\"affinity\" without routing_counts",
                   "the key routing_counts, which names a CSV file with the columns layer,expert,site,count",
                   "routing_counts = \"routing.csv\"");
}

void check_rotated(const Scenario& scenario, const Method& method) {
  if (scenario.strategy.placement != PlacementKind::rotated || !has_axis(method, "placement")) return;
  const ExpertShares shares = expert_shares(scenario);
  if (shares.fewest_of_layer() == shares.most_of_layer()) return;
  throw InputError("strategy.placement",
                   "\"rotated\" where sites hold " + std::to_string(shares.fewest_of_layer()) + " or " +
                       std::to_string(shares.most_of_layer()) + " experts of a layer",
                   "\"fixed\" or \"random\", or experts · expert_overlap that the number of sites divides",
                   "placement = \"fixed\"");
}

// A store is used where a method averages, once a round.
void check_store(const Scenario& scenario, const Method& method) {
  const Strategy& strategy = scenario.strategy;
  if (strategy.collective != Collective::store) return;
  if (!scenario.platform.store)
    throw InputError("strategy.collective", "\"store\" without a store",
                     "the table [platform.store], which describes the store and may be empty",
                     "[platform.store]");
  const char* parts = strategy.layerwise && has_axis(method, "layerwise") ? "layerwise"
                      : in_fragments(strategy)                            ? "fragments or overlap_steps"
                                                                          : nullptr;
  if (!method.through_store || parts != nullptr)
    throw InputError(
        "strategy.collective",
        "\"store\" with " + method.name + (method.through_store ? std::string(" and ") + parts : ""),
        "\"ring\" or \"direct\", or a method that averages everything at once (diloco, dept, "
        "fedavg, fomoe, local_adamw, local_sgd, sparse_loco)",
        "\"ring\"");
  if (strategy.secure_aggregation)
    throw InputError("strategy.secure_aggregation", "true with collective = \"store\"",
                     "false, because masks are exchanged between all pairs of sites, not through a store",
                     "false");
}

// A chain leads to a server.
void check_chain(const Scenario& scenario, const Method& method) {
  if (scenario.strategy.collective != Collective::chain || method.through_chain) return;
  throw InputError("strategy.collective", "\"chain\" with " + method.name,
                   "\"ring\" or \"direct\", or a method whose server reduces and broadcasts (fedavg)",
                   "\"ring\"");
}

// A run can drop a lost site only if the other sites have copies of everything that it held.
void check_policy(const Scenario& scenario, const Method& method) {
  if (!scenario.failures || scenario.failures->policy != FailurePolicy::drop) return;
  const bool only_copy = residency_of(method, scenario.strategy.sharding) != Residency::replica ||
                         method.one_site ||
                         (method.partial_experts && effective_overlap(scenario) == 1 && scenario.sites() > 1);
  if (!only_copy) return;
  throw InputError(
      "failures.policy",
      "\"drop\" with " + std::string(method.name) + (method.partial_experts ? " and expert_overlap = 1" : ""),
      "\"wait\", because a lost site holds the only copy of a part of the training state",
      "policy = \"wait\"");
}

// A method that trains at the first site alone reads data and writes checkpoints there.
void check_traffic(const Scenario& scenario, const Method& method) {
  if (!method.one_site) return;
  const auto refuse_elsewhere = [&](const char* key, const std::optional<int>& site) {
    if (site.value_or(0) == 0) return;
    const std::vector<platforms::Site>& sites = scenario.platform.sites;
    throw InputError(key, sites[static_cast<std::size_t>(*site)].name + " with " + std::string(method.name),
                     sites.front().name + ", where alone this method trains", sites.front().name);
  };
  refuse_elsewhere("traffic.data_site", scenario.traffic.data_site);
  refuse_elsewhere("traffic.checkpoint_site", scenario.traffic.checkpoint_site);
  if (scenario.traffic.rejoin_site)
    throw InputError("traffic.rejoin_site", "a site that rejoins with " + std::string(method.name),
                     "no such site, since no other site has the state", "--unset traffic.rejoin_site");
}

// Parts of the batch may differ if a site computes all of its own part, and each part has a sequence.
void check_batch_shares(const Scenario& scenario, const Method& method) {
  if (scenario.workload.batch_shares.empty() || method.one_site) return;
  if (!allows_unequal_parts(method))
    throw InputError("workload.batch", "parts of the batch that differ, with " + std::string(method.name),
                     "equal parts for a method whose sites compute each other's tokens", "batch = \"equal\"");
  for (int site = 0; site < scenario.sites(); ++site) {
    if (local_batch_sequences(scenario, site) > 0) continue;
    throw InputError(
        "workload.global_batch_sequences", std::to_string(scenario.workload.global_batch_sequences),
        "enough sequences to give one to " + scenario.platform.sites[static_cast<std::size_t>(site)].name +
            ", whose part of the batch is smaller",
        std::to_string(scenario.workload.global_batch_sequences * 16));
  }
}

// Each bucket is a call, which is planned and simulated on its own.
void check_buckets(const Scenario& scenario) {
  constexpr double kMostCalls = 1e6;
  const std::int64_t bucket_bytes = scenario.strategy.bucket_bytes;
  if (bucket_bytes == 0) return;
  const double bytes = static_cast<double>(count_parameters(scenario.model).total()) *
                       scenario.strategy.wire.bytes_per_element();
  const double calls = bytes / static_cast<double>(bucket_bytes);
  if (calls <= kMostCalls) return;
  const auto least_kb = static_cast<std::int64_t>(std::ceil(bytes / kMostCalls / 1000));
  throw InputError(
      "strategy.bucket_bytes",
      std::to_string(bucket_bytes) + " bytes, which cut the " + std::to_string(std::llround(bytes / 1e6)) +
          " MB of this model into " + std::to_string(std::llround(calls / 1e6)) + " million calls",
      "buckets that make at most a million calls, of " + std::to_string(least_kb) + " kB or more",
      "bucket_bytes = \"" + std::to_string(std::max<std::int64_t>(least_kb / 1000 + 1, 25)) + "MB\"");
}

// The simulation takes a link of less than a byte in a week for one that is down.
void check_rates(const Scenario& scenario) {
  constexpr double kLeast_bytes_per_s = 1e-5;
  const double share = scenario.network.bandwidth_efficiency * free_share(scenario.network);
  for (const platforms::Site& site : scenario.platform.sites) {
    if (share * std::min(site.uplink_bytes_per_s, site.downlink_bytes_per_s) >= kLeast_bytes_per_s) continue;
    throw InputError("network_model.bandwidth_efficiency",
                     "a rate of less than 1e-5 bytes per second of payload at site " + site.name,
                     "shares of the links' rates that leave some of them", "bandwidth_efficiency = 0.95");
  }
}

// Runs a check for the first site, or for each site if they differ; the message then names the site.
template <class Check>
void check_each_site(const Scenario& scenario, const Check& check_site) {
  if (scenario.site_compute.empty()) return check_site(0);
  for (int site = 0; site < scenario.sites(); ++site) {
    try {
      check_site(site);
    } catch (const InputError& error) {
      const std::string& name = scenario.platform.sites[static_cast<std::size_t>(site)].name;
      throw InputError(error.key(), std::string(error.what()) + " (at site " + name + ")");
    }
  }
}

// A step cannot compute more than the GPUs' peak rate. `site` represents the sites that are like it.
void check_peak(const Scenario& scenario, int site) {
  const AtSite at(scenario, site);
  const bool assumed = std::holds_alternative<AssumedDevice>(at.scenario().compute);
  const double sequences = sequences_of_work(scenario, site);
  if (assumed || at.scenario().peak_flops == 0 || sequences == 0) return;
  const ComputeTimes times = site_compute_times(scenario, site);
  const std::optional<Efficiency> efficiency = step_efficiency(at, sequences, times);
  if (!efficiency || !(efficiency->mfu > 1)) return;
  std::ostringstream got, least;
  got << std::setprecision(4) << times.step_s() << " s for a step of "
      << scenario.platform.sites[static_cast<std::size_t>(site)].name << ", an MFU of "
      << 100 * efficiency->mfu << " %";
  least << std::setprecision(4) << std::ceil(1e5 * times.step_s() * efficiency->mfu) / 1e5 << 's';
  const bool given = std::holds_alternative<GivenStepTime>(at.scenario().compute);
  throw InputError(given ? "compute.step_time" : "compute.profile", got.str(),
                   "a step that does not exceed the peak rate of its " +
                       std::to_string(at.scenario().gpus.count) + " GPUs: at least " + least.str() +
                       ", or the GPUs that were timed",
                   "\"" + least.str() + "\"");
}

}  // namespace

void check(const Scenario& scenario) {
  const Method* method = scenario.strategy.method;
  if (method->partial_experts) {
    if (scenario.model.experts == 0) {
      throw InputError("strategy.method", "\"" + std::string(method->name) + "\" for a model without experts",
                       "a method that keeps full replicas, or a model with experts", "method = \"diloco\"");
    }
    check_overlap(scenario);
  }
  check_each_site(scenario, [&](int site) { check_site_gpus(AtSite(scenario, site)); });
  check_overlapping(scenario, *method);
  check_compression(scenario, *method);
  check_store(scenario, *method);
  check_chain(scenario, *method);
  check_buckets(scenario);
  check_rates(scenario);
  check_affinity(scenario, *method);
  check_rotated(scenario, *method);
  if (has_axis(*method, "gossip_peers") &&
      scenario.strategy.gossip_peers > std::max(1, scenario.sites() - 1)) {
    throw InputError(
        "strategy.gossip_peers", std::to_string(scenario.strategy.gossip_peers),
        "at most " + std::to_string(std::max(1, scenario.sites() - 1)) + ", the number of other sites", "1");
  }
  if (scenario.workload.global_batch_sequences < scenario.sites()) {
    throw InputError("workload.global_batch_sequences",
                     std::to_string(scenario.workload.global_batch_sequences),
                     "at least one sequence for each of the " + std::to_string(scenario.sites()) + " sites",
                     std::to_string(scenario.sites()));
  }
  if (method->check != nullptr) method->check(scenario);
  check_composition(scenario);
  check_batch_shares(scenario, *method);
  check_policy(scenario, *method);
  check_traffic(scenario, *method);
  check_each_site(scenario, [&](int site) { check_profile(AtSite(scenario, site)); });
  check_each_site(scenario, [&](int site) { check_peak(scenario, site); });
}

}  // namespace fomoe::costmodel
