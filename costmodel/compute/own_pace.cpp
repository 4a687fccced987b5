#include "costmodel/compute/own_pace.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "costmodel/compute/pace_sharing.hpp"
#include "costmodel/compute/site_times.hpp"
#include "costmodel/compute/step_variation.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

using platforms::Platform;

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
std::vector<Pace> computing(const Scenario& scenario, const Counts& counts, const Platform& platform) {
  const double factor = scenario.variation.from_samples ? 1 : expected_step_factor(scenario.variation);
  const std::vector<ComputeTimes> times = site_times(scenario, counts);
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

namespace {

OwnPaces paces_with(const Scenario& scenario, const Counts& counts,
                    const std::optional<std::pair<double, double>>& bytes) {
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
  answer.sites = computing(scenario, counts, platform);
  const std::vector<Worker> workers = workers_of(scenario, platform, answer.sites, up_bytes, down_bytes);
  const std::vector<Cycle> cycles = shared_cycles(workers, first_link + platform.shared_links.size());
  std::vector<double> sequences(answer.sites.size(), 0.0);
  double sequences_per_s = 0;
  std::size_t next = 0;
  for (std::size_t w = 0; w < answer.sites.size(); ++w) {
    Pace& pace = answer.sites[w];
    if (pace.local_steps == 0) continue;
    const Cycle& cycle = cycles[next++];
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

}  // namespace

OwnPaces own_paces(const Scenario& scenario, std::optional<std::pair<double, double>> bytes) {
  return paces_with(scenario, counts_of(scenario), bytes);
}

std::optional<OwnPaces> own_paces_of(const Scenario& scenario, const Counts& counts) {
  if (!at_own_pace(scenario.strategy)) return std::nullopt;
  return paces_with(scenario, counts, std::nullopt);
}

}  // namespace fomoe::costmodel
