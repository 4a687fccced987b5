#include "costmodel/compose/ring_orders.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/pieces.hpp"

namespace fomoe::costmodel {

namespace {

constexpr std::size_t kMaxSearchWork = 20'000'000;  // limit on separate searches, in sets · nodes

bool orders_rings(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategy;
  return strategy.ring_order == RingOrder::best && strategy.collective == Collective::ring &&
         has_axis(*strategy.method, "collective");
}

/// The transfers into which granularity and buckets cut the whole model. The last bucket counts as a part.
double parts_of_model(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategy;
  double parts = 1;
  if (strategy.granularity == Granularity::tensor) {
    parts = 0;
    for (const TensorGroup& group : tensor_groups(scenario.model, strategy.skip_token))
      parts += static_cast<double>(tensor_elements(scenario.model, group).size());
  }
  if (strategy.bucket_bytes > 0)
    parts =
        std::max(parts, static_cast<double>(count_parameters(scenario.model).total()) *
                            strategy.wire.bytes_per_element() / static_cast<double>(strategy.bucket_bytes));
  return parts;
}

/// Whether all sites of an exchange send and receive alike, in the order of a ring.
bool in_a_ring(const Transfer& transfer) {
  const Pattern pattern = transfer.pattern;
  return transfer.collective == Collective::ring &&
         (pattern == Pattern::all_reduce || pattern == Pattern::reduce_scatter ||
          pattern == Pattern::all_gather || pattern == Pattern::all_to_all_broadcast);
}

/// What the rings of the mean round send over each hop of a ring of all sites.
struct RingUse {
  double steps = 0, bytes = 0;
};

RingUse ring_use(const Scenario& scenario) {
  const PlanSummary summary = summarise(*scenario.strategy.method, axes_of(scenario), fixed_of(scenario));
  // A summary that adds up rings of all sites and of the owners of experts does not say that they are rings.
  const auto is_ring = [](const Stage& stage) { return stage.between == Between::ring; };
  const bool told = std::any_of(summary.stages.begin(), summary.stages.end(), is_ring);
  RingUse use;
  double steps_of_one = std::numeric_limits<double>::infinity();  // of the shortest ring
  for (const Stage& stage : summary.stages) {
    const bool counts =
        told ? is_ring(stage)
             : (stage.between == Between::any || stage.between == Between::owners) && !stage.star;
    if (!counts || stage.part_of_previous || stage.latency_hops == 0) continue;
    use.steps += stage.times_per_round * stage.latency_hops;
    use.bytes += stage.times_per_round * stage.bytes;
    steps_of_one = std::min(steps_of_one, stage.latency_hops);
  }
  if (use.steps == 0) return use;
  const double model_bytes = static_cast<double>(count_parameters(scenario.model).total()) *
                             scenario.strategy.wire.bytes_per_element();
  // Of summed payloads, a step sends 1/M. A method may send parameters and moments, each of them in parts.
  const double contents =
      scenario.strategy.wire.sparse() ? 1 : use.bytes * scenario.sites() / (model_bytes * steps_of_one);
  use.steps =
      std::max(use.steps, steps_of_one * parts_of_model(scenario) * std::max(1.0, std::round(contents)));
  return use;
}

std::vector<NodeId> all_sites(const Scenario& scenario) {
  std::vector<NodeId> sites(static_cast<std::size_t>(scenario.sites()));
  std::iota(sites.begin(), sites.end(), 0);
  return sites;
}

/// "a → b → c"
std::string names_of(const Scenario& scenario, const std::vector<NodeId>& ring) {
  std::string names;
  for (std::size_t i = 0; i < ring.size() && i < 16; ++i)
    names += (i == 0 ? "" : kRingArrow) + scenario.platform.sites[static_cast<std::size_t>(ring[i])].name;
  return ring.size() > 16 ? names + " → …" : names;
}

}  // namespace

HopTimes hop_times(const Scenario& scenario) {
  const platforms::Platform platform = effective_platform(scenario.platform, scenario.network);
  const RingUse use = ring_use(scenario);
  HopTimes times{platform.size(), std::vector<double>(platform.sites.size() * platform.sites.size(), 0)};
  for (int from = 0; from < platform.size(); ++from) {
    for (int to = 0; to < platform.size(); ++to) {
      if (from == to) continue;
      const platforms::Path& path = platform.path(from, to);
      const double round_trip_s = path.latency_s + platform.path(to, from).latency_s;
      const double bytes_per_s = std::min(platform.route_bytes_per_s(from, to),
                                          flow_cap_bytes_per_s(scenario.network, round_trip_s, path));
      times.seconds[static_cast<std::size_t>(from * times.nodes + to)] =
          use.steps * path.latency_s + use.bytes / bytes_per_s;
    }
  }
  return times;
}

RingOrders::RingOrders(const Scenario& scenario) {
  if (!orders_rings(scenario)) return;
  if (const std::vector<int>& ring = scenario.strategy.ring_of_run; !ring.empty()) {
    active_ = true;
    times_.nodes = scenario.sites();
    work_ = kMaxSearchWork;  // nothing is searched
    set_ranks(ring);
    return;
  }
  times_ = hop_times(scenario);
  std::map<std::string, int> regions;
  for (const platforms::Site& site : scenario.platform.sites)
    region_.push_back(regions.try_emplace(site.region, static_cast<int>(regions.size())).first->second);
  if (scenario.platform.shared_links.empty() || regions.size() < 2) region_.clear();
  active_ = !times_.all_equal() || !region_.empty();
}

void RingOrders::set_ranks(const std::vector<NodeId>& ring) {
  rank_.resize(ring.size());
  for (std::size_t i = 0; i < ring.size(); ++i) rank_[static_cast<std::size_t>(ring[i])] = i;
}

std::vector<NodeId> RingOrders::by_region(std::vector<NodeId> ring) const {
  if (region_.empty()) return ring;
  std::vector<NodeId> grouped = ring;
  std::stable_sort(grouped.begin(), grouped.end(), [&](NodeId a, NodeId b) {
    return region_[static_cast<std::size_t>(a)] < region_[static_cast<std::size_t>(b)];
  });
  const auto crossings = [&](const std::vector<NodeId>& order) {
    int count = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
      count += region_[static_cast<std::size_t>(order[i])] !=
               region_[static_cast<std::size_t>(order[(i + 1) % order.size()])];
    return count;
  };
  const bool no_slower = slowest_hop_s(times_, grouped) <= slowest_hop_s(times_, ring) * (1 + 1e-12);
  return no_slower && crossings(grouped) < crossings(ring) ? grouped : ring;
}

void RingOrders::apply(std::vector<NodeId>& ring) {
  if (!active_ || ring.size() < 3) return;
  for (const NodeId node : ring) {
    if (node >= times_.nodes) return;  // the node is not the worker of a site
  }
  const auto found = known_.find(ring);
  if (found != known_.end()) {
    ring = found->second;
  } else if (work_ < kMaxSearchWork) {
    work_ += ring.size() << std::min(ring.size(), kExactRingNodes);
    ring = known_[ring] = by_region(best_ring(times_, ring));
  } else {
    // Beyond the limit on searches, a ring follows the order of the best ring of all sites.
    if (rank_.empty()) {
      std::vector<NodeId> all(static_cast<std::size_t>(times_.nodes));
      std::iota(all.begin(), all.end(), 0);
      set_ranks(by_region(best_ring(times_, all)));
    }
    std::sort(ring.begin(), ring.end(), [&](NodeId a, NodeId b) {
      return rank_[static_cast<std::size_t>(a)] < rank_[static_cast<std::size_t>(b)];
    });
  }
}

std::string ring_order_note(const Scenario& scenario) {
  const std::vector<NodeId> given = all_sites(scenario);
  std::vector<NodeId> ring = given;
  RingOrders(scenario).apply(ring);
  if (ring == given || !scenario.strategy.ring_of_run.empty()) return "";
  const HopTimes times = hop_times(scenario);
  std::ostringstream note;
  note.precision(4);
  if (slowest_hop_s(times, ring) >= slowest_hop_s(times, given)) {
    note << kRingOrderNote << names_of(scenario, ring)
         << ": the sites of each region together, so that fewer hops cross the links that regions share "
            "(strategy.ring_order)";
    return note.str();
  }
  note << kRingOrderNote << names_of(scenario, ring) << ": the slowest hop (latencies + bytes ÷ rate) takes "
       << slowest_hop_s(times, ring) << " s of a round instead of " << slowest_hop_s(times, given)
       << " s in the given order (strategy.ring_order)";
  return note.str();
}

Plan with_ring_orders(const Scenario& scenario, Plan plan) {
  RingOrders orders(scenario);
  if (!orders.active()) return plan;
  std::vector<NodeId> all = all_sites(scenario);
  orders.apply(all);  // searched once, and not in each round
  if (std::string note = ring_order_note(scenario); !note.empty()) plan.notes.push_back(std::move(note));
  plan.round = [orders, round = std::move(plan.round)](std::int64_t index) {
    RoundPlan ordered = round(index);
    RingOrders own = orders;  // a copy, since rounds may be made at the same time
    for (Op& op : ordered.ops) {
      auto* transfer = std::get_if<Transfer>(&op.what);
      if (transfer == nullptr || !in_a_ring(*transfer)) continue;
      for (Exchange& exchange : transfer->exchanges) own.apply(exchange.nodes);
    }
    return ordered;
  };
  return plan;
}

}  // namespace fomoe::costmodel
