#include "costmodel/plan/ring_order.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <sstream>
#include <utility>

#include "costmodel/inputs/network_model.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

namespace {

constexpr std::size_t kExactNodes = 16;             // 2^15 sets with up to 16 ends each take milliseconds
constexpr std::size_t kMaxSearchWork = 20'000'000;  // limit on separate searches, in sets · nodes

bool all_equal(const HopTimes& times) {
  double first = -1;
  for (int i = 0; i < times.nodes; ++i) {
    for (int j = 0; j < times.nodes; ++j) {
      if (i == j) continue;
      if (first < 0) first = times.at(i, j);
      if (times.at(i, j) != first) return false;
    }
  }
  return true;
}

// Returns a ring through all nodes whose hops take at most `limit_s`, or an empty one if there is none.
// reached[set] has a bit for every node at which a path from node 0 through exactly that set can end.
std::vector<NodeId> ring_within(const HopTimes& times, const std::vector<NodeId>& nodes, double limit_s) {
  const std::size_t n = nodes.size();
  const std::size_t all = (std::size_t{1} << n) - 1;
  const auto allowed = [&](std::size_t a, std::size_t b) { return times.at(nodes[a], nodes[b]) <= limit_s; };
  std::vector<std::uint32_t> allowed_before(n, 0);  // bit a: the hop from a to this node is allowed
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) allowed_before[b] |= std::uint32_t{a != b && allowed(a, b)} << a;
  }
  std::vector<std::uint32_t> reached(all + 1, 0);
  reached[1] = 1;
  for (std::size_t set = 1; set <= all; set += 2) {
    for (std::size_t next = 1; reached[set] != 0 && next < n; ++next) {
      if (!(set >> next & 1) && (reached[set] & allowed_before[next]) != 0)
        reached[set | std::size_t{1} << next] |= std::uint32_t{1} << next;
    }
  }
  std::size_t last = n;
  for (std::size_t end = 1; end < n; ++end) {
    if ((reached[all] >> end & 1) && allowed(end, 0)) last = end;
  }
  if (last == n) return {};
  std::vector<NodeId> ring = {nodes[last]};
  std::size_t set = all;
  while (last != 0) {
    set &= ~(std::size_t{1} << last);
    std::size_t before = 0;
    while (!(reached[set] >> before & 1) || !allowed(before, last)) ++before;
    last = before;
    ring.push_back(nodes[last]);
  }
  std::reverse(ring.begin(), ring.end());
  return ring;
}

std::vector<NodeId> exact_ring(const HopTimes& times, const std::vector<NodeId>& given) {
  std::vector<double> limits;
  for (const NodeId a : given) {
    for (const NodeId b : given) {
      if (a != b && times.at(a, b) < slowest_hop_s(times, given)) limits.push_back(times.at(a, b));
    }
  }
  std::sort(limits.begin(), limits.end());
  std::vector<NodeId> best = given;
  std::size_t low = 0, high = limits.size();  // the smallest limit with a ring is at an index in [low, high]
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    std::vector<NodeId> ring = ring_within(times, given, limits[middle]);
    if (ring.empty()) {
      low = middle + 1;
    } else {
      best = std::move(ring);
      high = middle;
    }
  }
  return best;
}

using Cost = std::pair<double, double>;  // slowest hop, sum of all hops

Cost cost_of(const HopTimes& times, const std::vector<NodeId>& ring) {
  Cost cost{0, 0};
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const double hop_s = times.at(ring[i], ring[(i + 1) % ring.size()]);
    cost.first = std::max(cost.first, hop_s);
    cost.second += hop_s;
  }
  return cost;
}

std::vector<NodeId> nearest_neighbours(const HopTimes& times, std::vector<NodeId> nodes) {
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    const auto next =
        std::min_element(nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1, nodes.end(),
                         [&](NodeId a, NodeId b) { return times.at(nodes[i], a) < times.at(nodes[i], b); });
    std::iter_swap(nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1, next);
  }
  return nodes;
}

// Local search by or-3opt moves: removes the slowest hop and two others if three faster hops can join the
// parts A, B, C as A C B. The move keeps directions, because a hop and its reverse differ. Every move removes
// one hop of the slowest time, so the search ends.
std::vector<NodeId> improved(const HopTimes& times, std::vector<NodeId> ring) {
  const std::size_t n = ring.size();
  const std::size_t max_moves = 300'000'000 / (n * n) + 8;  // limits the search to about a second
  for (std::size_t move = 0; move < max_moves; ++move) {
    std::size_t slowest = 0;
    for (std::size_t i = 1; i < n; ++i) {
      if (times.at(ring[i], ring[(i + 1) % n]) > times.at(ring[slowest], ring[(slowest + 1) % n]))
        slowest = i;
    }
    const double slowest_s = times.at(ring[slowest], ring[(slowest + 1) % n]);
    std::rotate(ring.begin(), ring.begin() + static_cast<std::ptrdiff_t>((slowest + 1) % n), ring.end());
    double best_s = slowest_s;
    std::size_t best_a = 0, best_b = 0;  // last index of A, last index of B
    for (std::size_t a = 0; a + 2 < n; ++a) {
      for (std::size_t b = a + 1; b + 1 < n; ++b) {
        const double joined_s = std::max(
            {times.at(ring[a], ring[b + 1]), times.at(ring[n - 1], ring[a + 1]), times.at(ring[b], ring[0])});
        if (joined_s >= best_s) continue;
        best_s = joined_s;
        best_a = a;
        best_b = b;
      }
    }
    if (best_s >= slowest_s) break;
    std::rotate(ring.begin() + static_cast<std::ptrdiff_t>(best_a) + 1,
                ring.begin() + static_cast<std::ptrdiff_t>(best_b) + 1, ring.end());
  }
  return ring;
}

}  // namespace

HopTimes hop_times(const Scenario& scenario, double transfers) {
  const platforms::Platform platform = effective_platform(scenario.platform, scenario.network);
  const double chunk_bytes = static_cast<double>(count_parameters(scenario.model).total()) *
                             scenario.strategy.wire.bytes_per_element() / scenario.sites();
  HopTimes times{platform.size(), std::vector<double>(platform.sites.size() * platform.sites.size(), 0)};
  for (int from = 0; from < platform.size(); ++from) {
    for (int to = 0; to < platform.size(); ++to) {
      if (from == to) continue;
      const platforms::Path& path = platform.path(from, to);
      const double round_trip_s = path.latency_s + platform.path(to, from).latency_s;
      const double bytes_per_s = std::min(platform.route_bytes_per_s(from, to),
                                          flow_cap_bytes_per_s(scenario.network, round_trip_s, path));
      times.seconds[static_cast<std::size_t>(from * times.nodes + to)] =
          transfers * path.latency_s + chunk_bytes / bytes_per_s;
    }
  }
  return times;
}

double slowest_hop_s(const HopTimes& times, const std::vector<NodeId>& ring) {
  return cost_of(times, ring).first;
}

std::vector<NodeId> best_ring(const HopTimes& times, const std::vector<NodeId>& given) {
  if (given.size() < 3) return given;
  if (given.size() <= kExactNodes) return exact_ring(times, given);
  const std::vector<NodeId> a = improved(times, given), b = improved(times, nearest_neighbours(times, given));
  const std::vector<NodeId>& found = cost_of(times, b) < cost_of(times, a) ? b : a;
  return slowest_hop_s(times, found) < slowest_hop_s(times, given) ? found : given;
}

RingOrders::RingOrders(const Scenario& scenario) {
  if (scenario.strategy.ring_order == RingOrder::given || scenario.strategy.collective != Collective::ring)
    return;
  times_ = hop_times(scenario);
  std::map<std::string, int> regions;
  for (const platforms::Site& site : scenario.platform.sites)
    region_.push_back(regions.try_emplace(site.region, static_cast<int>(regions.size())).first->second);
  if (scenario.platform.shared_links.empty() || regions.size() < 2) region_.clear();
  active_ = !all_equal(times_) || !region_.empty();
}

std::vector<NodeId> RingOrders::by_region(std::vector<NodeId> ring) const {
  if (region_.empty()) return ring;
  std::vector<NodeId> grouped = ring;
  std::stable_sort(grouped.begin(), grouped.end(), [&](NodeId a, NodeId b) {
    return region_[static_cast<std::size_t>(a)] < region_[static_cast<std::size_t>(b)];
  });
  const bool no_slower = slowest_hop_s(times_, grouped) <= slowest_hop_s(times_, ring) * (1 + 1e-12);
  return no_slower ? grouped : ring;
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
    work_ += ring.size() << std::min(ring.size(), kExactNodes);
    ring = known_[ring] = by_region(best_ring(times_, ring));
  } else {
    // Beyond the limit on searches, a ring follows the order of the best ring of all sites.
    if (rank_.empty()) {
      std::vector<NodeId> all(static_cast<std::size_t>(times_.nodes));
      std::iota(all.begin(), all.end(), 0);
      rank_.resize(all.size());
      const std::vector<NodeId> best = by_region(best_ring(times_, all));
      for (std::size_t i = 0; i < best.size(); ++i) rank_[static_cast<std::size_t>(best[i])] = i;
    }
    std::sort(ring.begin(), ring.end(), [&](NodeId a, NodeId b) {
      return rank_[static_cast<std::size_t>(a)] < rank_[static_cast<std::size_t>(b)];
    });
  }
}

static std::vector<NodeId> all_sites(const Scenario& scenario) {
  std::vector<NodeId> sites(static_cast<std::size_t>(scenario.sites()));
  std::iota(sites.begin(), sites.end(), 0);
  return sites;
}

/// "a → b → c"
static std::string names_of(const Scenario& scenario, const std::vector<NodeId>& ring) {
  std::string names;
  for (std::size_t i = 0; i < ring.size() && i < 16; ++i)
    names += (i == 0 ? "" : " → ") + scenario.platform.sites[static_cast<std::size_t>(ring[i])].name;
  return ring.size() > 16 ? names + " → …" : names;
}

/// Number of rings, one after another, that send the model in a round. It is the size of the whole model ÷
/// that of a bucket if that is more, and therefore not a whole number.
static double transfers_in_turn(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategy;
  double transfers = has_axis(*strategy.method, "fragments") ? strategy.fragments : 1;
  if (strategy.layerwise && has_axis(*strategy.method, "layerwise"))
    transfers = std::max(transfers, static_cast<double>(scenario.model.layers));
  if (strategy.bucket_bytes > 0)
    transfers = std::max(transfers, static_cast<double>(count_parameters(scenario.model).total()) *
                                        strategy.wire.bytes_per_element() /
                                        static_cast<double>(strategy.bucket_bytes));
  return transfers;
}

std::string divided_ring_note(const Scenario& scenario) {
  const double transfers = transfers_in_turn(scenario);
  const std::vector<NodeId> given = all_sites(scenario);
  if (transfers <= 1 || scenario.strategy.ring_order == RingOrder::given ||
      scenario.strategy.collective != Collective::ring || given.size() < 3)
    return "";
  const HopTimes times = hop_times(scenario, transfers);
  if (all_equal(times)) return "";
  std::vector<NodeId> ring = given;
  RingOrders(scenario).apply(ring);
  const std::vector<NodeId> faster = best_ring(times, given);
  constexpr double kWorthwhile = 0.99;
  if (slowest_hop_s(times, faster) > kWorthwhile * slowest_hop_s(times, ring)) return "";
  std::ostringstream note;
  note.precision(4);
  note << "the order of the ring is not the best one for transfers in about " << std::round(transfers)
       << " parts: in the order " << names_of(scenario, faster) << " the slowest hop of all parts takes "
       << slowest_hop_s(times, faster) << " s instead of " << slowest_hop_s(times, ring)
       << " s; list the sites in this order, with strategy.ring_order = \"given\"";
  return note.str();
}

std::string ring_order_note(const Scenario& scenario) {
  const std::vector<NodeId> given = all_sites(scenario);
  std::vector<NodeId> ring = given;
  RingOrders(scenario).apply(ring);
  if (ring == given) return "";
  const HopTimes times = hop_times(scenario);
  std::ostringstream note;
  note.precision(4);
  if (slowest_hop_s(times, ring) >= slowest_hop_s(times, given)) {
    note << "ring order " << names_of(scenario, ring)
         << ": the sites of each region together, so that fewer hops cross the links that regions share "
            "(strategy.ring_order)";
    return note.str();
  }
  note << "ring order " << names_of(scenario, ring) << ": the slowest hop (latency + chunk ÷ rate) takes "
       << slowest_hop_s(times, ring) << " s instead of " << slowest_hop_s(times, given)
       << " s in the given order (strategy.ring_order)";
  return note.str();
}

}  // namespace fomoe::costmodel
