#include "costmodel/compute/own_pace.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "costmodel/compute/site_times.hpp"
#include "costmodel/compute/step_variation.hpp"
#include "costmodel/math/root.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

using platforms::Platform;

constexpr double kShortest_s = 1e-12;  // a cycle without any duration cannot be told from others
// A transfer that alone fills its cycles takes as long as the others leave, whatever the cycle: without
// latency, any cycle would be consistent with a link that is used fully. Being a little later than its share
// makes it unique.
constexpr double kLater = 1 + 1e-9;

/// What a worker needs of something that all share, in seconds of each cycle if it has all of it.
struct Use {
  std::size_t shared = 0;  // index in Sharing::used
  double up_s = 0, down_s = 0;
  [[nodiscard]] double all_s() const { return up_s + down_s; }
  friend auto operator<=>(const Use&, const Use&) = default;
};

/// A worker's cycle without the others.
struct Worker {
  double steps_s = 0;                     // local steps
  double alone_s = 0;                     // steps, the outer step, latencies and the preparation of payloads
  double fragments = 1;                   // cycles until the same fragment is sent again
  double up_late_s = 0, down_late_s = 0;  // latency of a transfer, and what comes before it
  double up_s = 0, down_s = 0;            // transfers over links that no other worker uses
  std::vector<Use> uses;
  friend auto operator<=>(const Worker&, const Worker&) = default;
};

/// Parts of a cycle, in seconds.
struct Cycle {
  double up_s = 0, down_s = 0, all_s = 0;
};

/// The workers, of which those that are alike are one with a number, and the shares of the time for which
/// they use what they share.
class Sharing {
 public:
  Sharing(const std::vector<Worker>& workers, std::size_t shared) : used_(shared, 0.0) {
    for (const Worker& worker : workers) ++kinds_[worker];
    find_binding();
    solve();
  }

  [[nodiscard]] Cycle cycle_of(const Worker& worker) const {
    const double least_s = parts(worker, platforms::kUnlimited, 0).all_s;
    double most_s = parts(worker, platforms::kUnlimited, 1).all_s;
    if (most_s <= least_s) return parts(worker, least_s, 1);
    const auto longer = [&](double cycle_s) { return parts(worker, cycle_s, 1).all_s - cycle_s; };
    return parts(worker, root_of_decreasing(longer, least_s, most_s), 1);
  }

 private:
  /// The parts of a cycle of that duration, if the others use their shares; with `busy` 0, if they do
  /// nothing.
  [[nodiscard]] Cycle parts(const Worker& worker, double cycle_s, double busy) const {
    Cycle cycle{worker.up_s, worker.down_s, 0};
    for (const Use& use : worker.uses) {
      if (!binds_[use.shared]) continue;
      const double others = std::max(0.0, used_[use.shared] - use.all_s() / cycle_s);
      const double left = std::max(1e-15, 1 - busy * others);
      cycle.up_s = std::max(cycle.up_s, use.up_s / left);
      cycle.down_s = std::max(cycle.down_s, use.down_s / left);
    }
    const double fragment_s = (worker.alone_s + cycle.up_s + cycle.down_s) / worker.fragments;
    cycle.all_s = std::max({fragment_s, worker.steps_s, kShortest_s});
    if (worker.fragments > 1)
      cycle.all_s = std::max({cycle.all_s, (cycle.up_s + worker.up_late_s) * kLater,
                              (cycle.down_s + worker.down_late_s) * kLater});
    return cycle;
  }

  /// Finds what can be the slowest part of some worker's transfer. Most links never are: even if all cycles
  /// were as short as they can be, others would leave so much of them that something else is slower.
  void find_binding() {
    binds_.assign(used_.size(), true);
    std::vector<double> most(used_.size(), 0.0);  // shares of the time with the shortest cycles
    for (const auto& [worker, count] : kinds_) {
      const double least_s = parts(worker, platforms::kUnlimited, 0).all_s;
      for (const Use& use : worker.uses) most[use.shared] += count * use.all_s() / least_s;
    }
    std::vector<bool> binding(used_.size(), false);
    for (const auto& [worker, count] : kinds_) {
      for (const Use& use : worker.uses) {
        const double left = 1 - most[use.shared];
        const auto hidden = [&](double Use::*part, double own_s) {
          double slower_s = own_s;
          for (const Use& other : worker.uses)
            if (other.*part > use.*part) slower_s = std::max(slower_s, other.*part);
          return use.*part == 0 || (left > 0 && use.*part / left <= slower_s);
        };
        if (!hidden(&Use::up_s, worker.up_s) || !hidden(&Use::down_s, worker.down_s))
          binding[use.shared] = true;
      }
    }
    binds_ = binding;
  }

  [[nodiscard]] double use_of(std::size_t shared) const {
    double sum = 0;
    for (const auto& [worker, count] : kinds_) {
      for (const Use& use : worker.uses)
        if (use.shared == shared) sum += count * use.all_s() / cycle_of(worker).all_s;
    }
    return sum;
  }

  void solve() {
    constexpr int kMostSweeps = 100;
    constexpr double kSame = 1e-13;
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      double change = 0;
      for (std::size_t shared = 0; shared < used_.size(); ++shared) {
        if (!binds_[shared]) continue;
        const double before = used_[shared];
        const auto more = [&](double used) {
          used_[shared] = used;
          return use_of(shared) - used;
        };
        used_[shared] = root_of_decreasing(more, 0.0, 1.0 - 1e-12);
        change = std::max(change, std::abs(used_[shared] - before));
      }
      if (change <= kSame) return;
    }
  }

  std::map<Worker, double> kinds_;  // with their numbers
  std::vector<double> used_;        // share of the time, by what is shared
  std::vector<bool> binds_;         // whether it can be the slowest part of a transfer
};

/// The last result is kept: resolving a scenario asks three times for the paces of the same workers.
const Sharing& sharing_of(const std::vector<Worker>& workers, std::size_t shared) {
  struct Last {
    std::vector<Worker> workers;
    std::size_t shared;
    Sharing sharing;
  };
  thread_local std::optional<Last> last;
  if (!last || last->shared != shared || last->workers != workers)
    last.emplace(workers, shared, Sharing(workers, shared));
  return last->sharing;
}

/// What the workers share: downlink and uplink of the server's site, and shared links.
enum Shared : std::size_t { server_downlink, server_uplink, first_link };

std::vector<Worker> workers_of(const Scenario& scenario, const Platform& platform,
                               const std::vector<Pace>& paces, double up_bytes, double down_bytes) {
  const NetworkModel& network = scenario.network;
  const auto prepared_s = [&](double bytes) {
    return network.payload_bytes_per_s ? bytes / *network.payload_bytes_per_s : 0;
  };
  std::vector<Worker> workers;
  for (int site = 0; site < platform.size(); ++site) {
    const auto w = static_cast<std::size_t>(site);
    if (paces[w].local_steps == 0) continue;
    Worker& worker = workers.emplace_back();
    worker.steps_s = paces[w].steps_s;
    worker.alone_s = paces[w].steps_s + paces[w].applied_s;
    worker.fragments = static_cast<double>(fragments_of_paces(scenario.strategy));
    if (site == 0) continue;
    const platforms::Path &there = platform.path(site, 0), &back = platform.path(0, site);
    const double round_trip_s = there.latency_s + back.latency_s;
    worker.alone_s += round_trip_s + prepared_s(up_bytes + down_bytes) + 2 * network.call_overhead_s;
    worker.up_late_s = there.latency_s + prepared_s(up_bytes) + network.call_overhead_s;
    worker.down_late_s = back.latency_s + prepared_s(down_bytes) + network.call_overhead_s;
    const auto own_s = [&](int from, int to, double port_bytes_per_s, double bytes) {
      const platforms::Path& path = platform.path(from, to);
      const double cap = flow_cap_bytes_per_s(network, round_trip_s, path);
      return bytes / std::min({path.bandwidth_bytes_per_s, port_bytes_per_s, cap,
                               shared_cap_bytes_per_s(network, platform, from, to)});
    };
    worker.up_s = own_s(site, 0, platform.sites[w].uplink_bytes_per_s, up_bytes);
    worker.down_s = own_s(0, site, platform.sites[w].downlink_bytes_per_s, down_bytes);
    std::map<std::size_t, Use> uses;
    const auto use = [&](std::size_t shared) -> Use& {
      uses[shared].shared = shared;
      return uses[shared];
    };
    use(server_downlink).up_s = up_bytes / platform.sites.front().downlink_bytes_per_s;
    use(server_uplink).down_s = down_bytes / platform.sites.front().uplink_bytes_per_s;
    const auto over = [&](std::span<const int> links, double bytes, double Use::*part) {
      for (const int index : links) {
        const platforms::SharedLink& link = platform.shared_links[static_cast<std::size_t>(index)];
        if (!link.per_flow)  // data that cross the link twice need twice as much of it
          use(first_link + static_cast<std::size_t>(index)).*part += bytes / link.bandwidth_bytes_per_s;
      }
    };
    over(platform.shared_by(site, 0), up_bytes, &Use::up_s);
    over(platform.shared_by(0, site), down_bytes, &Use::down_s);
    for (const auto& [shared, one] : uses) worker.uses.push_back(one);
  }
  return workers;
}

/// The local steps of a cycle of each site's worker, and how long it computes.
std::vector<Pace> computing(const Scenario& scenario, const Platform& platform) {
  const double factor = scenario.variation.from_samples ? 1 : expected_step_factor(scenario.variation);
  const std::vector<ComputeTimes> times = site_times(scenario, counts_of(scenario));
  const std::int64_t fragments = fragments_of_paces(scenario.strategy);
  // A sweep resolves combinations, too, that its reader then refuses: more fragments than steps.
  const std::int64_t of_cycle = std::max<std::int64_t>(1, scenario.strategy.local_steps / fragments);
  const std::int64_t most = std::min(of_cycle, optimizer_steps(scenario));
  std::vector<double> step_s;
  double fastest_s = platforms::kUnlimited;
  for (std::size_t w = 0; w < times.size(); ++w) {
    step_s.push_back(times[w].step_s() * factor * platform.sites[w].compute_factor);
    if (local_batch_sequences(scenario, static_cast<int>(w)) > 0) fastest_s = std::min(fastest_s, step_s[w]);
  }
  std::vector<Pace> paces(times.size());
  for (std::size_t w = 0; w < paces.size(); ++w) {
    if (local_batch_sequences(scenario, static_cast<int>(w)) == 0) continue;
    Pace& pace = paces[w];
    pace.local_steps = most;
    if (scenario.strategy.dynamic_local_steps && step_s[w] > 0)
      pace.local_steps = std::max<std::int64_t>(
          1, static_cast<std::int64_t>(
                 std::floor(static_cast<double>(most) * fastest_s / step_s[w] * (1 + 1e-12))));
    pace.steps_s = static_cast<double>(pace.local_steps) * step_s[w];
    pace.applied_s = times.front().outer_step_s * factor * platform.sites.front().compute_factor /
                     static_cast<double>(fragments);
  }
  return paces;
}

/// Divides the sequences of the run into whole cycles.
void share_out(std::vector<Pace>& paces, const std::vector<double>& sequences, double all_sequences,
               std::int64_t fragments) {
  double left = all_sequences;
  for (std::size_t w = 0; w < paces.size(); ++w) {
    if (paces[w].local_steps == 0) continue;
    // At least one of each fragment: the plan shows the pace of every site.
    paces[w].cycles = std::max<std::int64_t>(
        fragments, static_cast<std::int64_t>(std::floor(paces[w].cycles_of_run * (1 + 1e-12))));
    left -= sequences[w] * static_cast<double>(paces[w].cycles);
  }
  // The workers whose next cycle would end first train the rest.
  while (left > 1e-9 * all_sequences) {
    const auto end_s = [&](const Pace& pace) {
      return pace.local_steps == 0 ? platforms::kUnlimited
                                   : static_cast<double>(pace.cycles + 1) * pace.cycle_s;
    };
    const auto next = std::min_element(paces.begin(), paces.end(),
                                       [&](const Pace& a, const Pace& b) { return end_s(a) < end_s(b); });
    ++next->cycles;
    left -= sequences[static_cast<std::size_t>(next - paces.begin())];
  }
}

}  // namespace

std::int64_t fragments_of_paces(const Strategy& strategy) {
  return has_axis(*strategy.method, "fragments") ? strategy.fragments : 1;
}

double remote_cycles(const OwnPaces& paces) {
  double cycles = 0;
  for (std::size_t w = 1; w < paces.sites.size(); ++w) cycles += paces.sites[w].cycles_of_run;
  return cycles;
}

OwnPaces own_paces(const Scenario& scenario, std::optional<std::pair<double, double>> bytes) {
  const auto of_model = [&](Content content) {
    return static_cast<double>(count_parameters(scenario.model).total()) *
           format_of(scenario.strategy, content).bytes_per_element();
  };
  const std::int64_t fragments = fragments_of_paces(scenario.strategy);
  const auto parts = static_cast<double>(fragments);
  const double up_bytes = (bytes ? bytes->first : of_model(Content::pseudo_gradient)) / parts;
  const double down_bytes = (bytes ? bytes->second : of_model(Content::parameter)) / parts;
  const Platform platform = effective_platform(scenario.platform, scenario.network);
  OwnPaces answer{{}, 0, up_bytes, down_bytes, fragments};
  answer.sites = computing(scenario, platform);
  const std::vector<Worker> workers = workers_of(scenario, platform, answer.sites, up_bytes, down_bytes);
  const Sharing& sharing = sharing_of(workers, first_link + platform.shared_links.size());
  std::vector<double> sequences(answer.sites.size(), 0.0);
  double sequences_per_s = 0;
  std::size_t next = 0;
  for (std::size_t w = 0; w < answer.sites.size(); ++w) {
    Pace& pace = answer.sites[w];
    if (pace.local_steps == 0) continue;
    const Cycle cycle = sharing.cycle_of(workers[next++]);
    pace.cycle_s = cycle.all_s;
    const double latency_s = w == 0 ? 0 : platform.path(static_cast<int>(w), 0).latency_s;
    pace.up_s = cycle.up_s + latency_s;
    // With one fragment, the rest of the cycle; otherwise a worker is late by what steps do not cover.
    pace.down_s = fragments > 1 ? cycle.down_s + latency_s
                                : std::max(0.0, cycle.all_s - pace.steps_s - pace.applied_s - pace.up_s);
    pace.exposed_s = fragments > 1 ? cycle.all_s - pace.steps_s : pace.up_s + pace.down_s;
    pace.up_bytes_per_s = up_bytes / cycle.up_s;
    pace.down_bytes_per_s = down_bytes / cycle.down_s;
    sequences[w] =
        static_cast<double>(pace.local_steps * local_batch_sequences(scenario, static_cast<int>(w)));
    sequences_per_s += sequences[w] / pace.cycle_s;
  }
  const auto all = static_cast<double>(optimizer_steps(scenario) * scenario.workload.global_batch_sequences);
  answer.run_s = all / sequences_per_s;
  for (Pace& pace : answer.sites)
    if (pace.local_steps > 0) pace.cycles_of_run = answer.run_s / pace.cycle_s;
  share_out(answer.sites, sequences, all, fragments);
  return answer;
}

}  // namespace fomoe::costmodel
