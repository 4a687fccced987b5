#include "costmodel/scenario.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "costmodel/closed_form.hpp"
#include "costmodel/methods/composition.hpp"
#include "costmodel/methods/method.hpp"
#include "costmodel/plan_summary.hpp"
#include "costmodel/site_model.hpp"
#include "platforms/input_error.hpp"

namespace fomoe::costmodel {

namespace {

// O_e must make N_le = O_e·N_e/M a whole number; the legal values nearest to what was asked, for the message.
void check_overlap(const Scenario& scenario) {
  const int sites = scenario.sites();
  const int overlap = scenario.strategy.expert_overlap;
  const std::int64_t experts = scenario.model.experts;
  const auto legal = [&](int value) {
    return value >= 1 && value <= sites && (value * experts) % sites == 0;
  };
  if (legal(overlap)) return;
  int below = overlap, above = overlap;
  while (below >= 1 && !legal(below)) --below;
  while (above <= sites && !legal(above)) ++above;
  std::string nearest;
  if (below >= 1) nearest = std::to_string(below);
  if (above <= sites && above >= 1) nearest += (nearest.empty() ? "" : " or ") + std::to_string(above);
  if (nearest.empty()) nearest = std::to_string(sites);
  throw InputError("strategy.expert_overlap", std::to_string(overlap),
                   "1 to " + std::to_string(sites) + " sites such that expert_overlap · " +
                       std::to_string(experts) + " experts ÷ " + std::to_string(sites) +
                       " sites is a whole number; the nearest is " + nearest,
                   nearest.substr(0, nearest.find(' ')));
}

// Fragments are made of whole layers, take turns within a round of several steps, and are merged before they
// are sent again.
void check_overlapping(const Scenario& scenario, const Method& method) {
  const Strategy& strategy = scenario.strategy;
  if (has_axis(method, "fragments")) {
    const bool by_steps = !method.every_step;
    std::int64_t most = std::max<std::int64_t>(1, scenario.model.layers);
    if (by_steps) most = std::min(most, strategy.local_steps);
    if (strategy.fragments > most) {
      std::string expected =
          "at most one for each of the " + std::to_string(scenario.model.layers) + " layers";
      if (by_steps) expected += " and each of the " + std::to_string(strategy.local_steps) + " local steps";
      throw InputError("strategy.fragments", std::to_string(strategy.fragments), expected,
                       std::to_string(most));
    }
  }
  if (has_axis(method, "overlap_steps") && strategy.overlap_steps > strategy.local_steps) {
    throw InputError("strategy.overlap_steps", std::to_string(strategy.overlap_steps),
                     "at most the " + std::to_string(strategy.local_steps) +
                         " local steps after which the same fragment is sent again",
                     std::to_string(strategy.local_steps));
  }
}

// Top-k keeps the largest differences; of parameters or moments it would keep the wrong thing.
void check_compression(const Scenario& scenario, const Method& method) {
  const Strategy& strategy = scenario.strategy;
  if (!strategy.wire.sparse()) return;
  const bool sends_differences =
      has_axis(method, "compression") &&
      (!has_axis(method, "outer_optimizer") || outer_steps_of(strategy.outer_optimizer) > 0);
  if (sends_differences) return;
  std::string able;
  for (const Method& other : methods()) {
    if (has_axis(other, "compression")) able += (able.empty() ? "" : ", ") + std::string(other.name);
  }
  throw InputError("strategy.compression",
                   "top_k with " + strategy.method +
                       (has_axis(method, "compression")
                            ? std::string(" and outer_optimizer ") + to_string(strategy.outer_optimizer)
                            : ""),
                   "a method that sends gradients or pseudo-gradients (" + able +
                       "), with an outer optimiser that takes them (nesterov, adam, yogi)",
                   "method = \"sparse_loco\"");
}

void check_affinity(const Scenario& scenario, const Method& method) {
  const RoutingCounts& counts = scenario.strategy.routing_counts;
  if (scenario.strategy.placement != PlacementKind::affinity || !counts.empty()) return;
  if (!has_axis(method, "placement")) return;
  throw InputError("strategy.placement", "\"affinity\" without routing_counts",
                   "routing_counts, a CSV with the columns layer,expert,site,count",
                   "routing_counts = \"routing.csv\"");
}

}  // namespace

void check(const Scenario& scenario) {
  const Method* method = find_method(scenario.strategy.method);
  if (method == nullptr) {
    throw InputError("strategy.method", "\"" + scenario.strategy.method + "\"",
                     "a name that `fomoe list methods` prints", "\"fomoe\"");
  }
  if (method->partial_experts) {
    if (scenario.model.experts == 0) {
      throw InputError("strategy.method", "\"" + scenario.strategy.method + "\" for a model without experts",
                       "a method that keeps full replicas, or a model with experts", "method = \"diloco\"");
    }
    check_overlap(scenario);
  }
  check_site_gpus(scenario);
  check_overlapping(scenario, *method);
  check_compression(scenario, *method);
  check_affinity(scenario, *method);
  if (has_axis(*method, "gossip_peers") &&
      scenario.strategy.gossip_peers > std::max(1, scenario.sites() - 1)) {
    throw InputError("strategy.gossip_peers", std::to_string(scenario.strategy.gossip_peers),
                     "at most all other sites, " + std::to_string(std::max(1, scenario.sites() - 1)), "1");
  }
  if (scenario.workload.global_batch_sequences < scenario.sites()) {
    throw InputError("workload.global_batch_sequences",
                     std::to_string(scenario.workload.global_batch_sequences),
                     "at least one sequence for each of the " + std::to_string(scenario.sites()) + " sites",
                     std::to_string(scenario.sites()));
  }
  if (method->check != nullptr) method->check(scenario);
  check_composition(scenario);
  (void)compute_times(scenario, static_cast<double>(local_batch_sequences(
                                    scenario, 0)));  // a profile of another model or batch is refused here
}

const char* to_string(PlacementKind kind) {
  switch (kind) {
    case PlacementKind::fixed:
      return "fixed";
    case PlacementKind::random:
      return "random";
    case PlacementKind::affinity:
      return "affinity";
  }
  std::abort();
}

const char* to_string(OuterOptimizer optimizer) {
  switch (optimizer) {
    case OuterOptimizer::nesterov:
      return "nesterov";
    case OuterOptimizer::adam:
      return "adam";
    case OuterOptimizer::yogi:
      return "yogi";
    case OuterOptimizer::average:
      return "average";
    case OuterOptimizer::local_adamw:
      return "local_adamw";
  }
  std::abort();
}

const char* to_string(OuterStateOnMigration what) {
  return what == OuterStateOnMigration::transfer ? "transfer" : "reset_all_owners";
}

const char* to_string(Granularity granularity) {
  return granularity == Granularity::flat ? "flat" : "tensor";
}

const char* to_string(Collective collective) {
  switch (collective) {
    case Collective::ring:
      return "ring";
    case Collective::direct:
      return "direct";
    case Collective::hierarchical:
      return "hierarchical";
    case Collective::recursive:
      return "recursive";
  }
  return "";
}

const char* to_string(RouterModel router) {
  switch (router) {
    case RouterModel::uniform:
      return "uniform";
    case RouterModel::hash:
      return "hash";
    case RouterModel::expert_choice:
      return "expert_choice";
  }
  return "";
}

const char* to_string(RingOrder order) { return order == RingOrder::given ? "given" : "best"; }

}  // namespace fomoe::costmodel
