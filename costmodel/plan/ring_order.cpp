#include "costmodel/plan/ring_order.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace fomoe::costmodel {

namespace {

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

bool HopTimes::all_equal() const {
  double first = -1;
  for (int i = 0; i < nodes; ++i) {
    for (int j = 0; j < nodes; ++j) {
      if (i == j) continue;
      if (first < 0) first = at(i, j);
      if (at(i, j) != first) return false;
    }
  }
  return true;
}

double slowest_hop_s(const HopTimes& times, const std::vector<NodeId>& ring) {
  return cost_of(times, ring).first;
}

// Up to 16 nodes, the 2^15 sets of visited nodes with up to 16 ends each take milliseconds.
std::vector<NodeId> best_ring(const HopTimes& times, const std::vector<NodeId>& given) {
  if (given.size() < 3) return given;
  if (given.size() <= kExactRingNodes) return exact_ring(times, given);
  const std::vector<NodeId> a = improved(times, given), b = improved(times, nearest_neighbours(times, given));
  const std::vector<NodeId>& found = cost_of(times, b) < cost_of(times, a) ? b : a;
  return slowest_hop_s(times, found) < slowest_hop_s(times, given) ? found : given;
}

}  // namespace fomoe::costmodel
