#include "costmodel/methods/shared/own_pace.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "costmodel/compute/site_times.hpp"
#include "costmodel/compute/step_variation.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

struct Worker {
  double step_s = 0, up_s = 0, applied_s = 0, down_s = 0;
};

std::vector<Worker> workers_of(const Scenario& scenario, double up_bytes, double down_bytes) {
  const platforms::Platform platform = effective_platform(scenario.platform, scenario.network);
  const double factor = scenario.variation.from_samples ? 1 : expected_step_factor(scenario.variation);
  const auto transfer_s = [&](int from, int to, double bytes) {
    return platform.path(from, to).latency_s + bytes / platform.route_bytes_per_s(from, to);
  };
  const std::vector<ComputeTimes> times = site_times(scenario, counts_of(scenario));
  const double outer_step_s = times.front().outer_step_s * platform.sites.front().compute_factor;
  std::vector<Worker> workers;
  for (int site = 0; site < scenario.sites(); ++site) {
    Worker worker;
    worker.step_s = times[static_cast<std::size_t>(site)].step_s() * factor *
                    platform.sites[static_cast<std::size_t>(site)].compute_factor;
    worker.applied_s = outer_step_s;
    if (site > 0) {
      worker.up_s = transfer_s(site, 0, up_bytes);
      worker.down_s = transfer_s(0, site, down_bytes);
    }
    workers.push_back(worker);
  }
  return workers;
}

double cycle_s(const Worker& worker, std::int64_t local_steps, double slower) {
  return static_cast<double>(local_steps) * worker.step_s + worker.applied_s +
         slower * (worker.up_s + worker.down_s);
}

// The factor on all transfers with which the remote workers use the server's links fully, or 1 if these links
// are not full. `busy_s` is the time that one cycle's transfer occupies the server's link.
double slower_transfers(const std::vector<Worker>& workers, const std::vector<Pace>& paces, double busy_s) {
  const auto used = [&](double slower) {
    double sum = 0;
    for (std::size_t w = 1; w < workers.size(); ++w)
      sum += busy_s / cycle_s(workers[w], paces[w].local_steps, slower);
    return sum;
  };
  if (!(used(1) > 1)) return 1;
  double enough = 2, too_few = 1;
  while (used(enough) > 1) enough *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (enough + too_few) / 2;
    (used(middle) > 1 ? too_few : enough) = middle;
  }
  return enough;
}

}  // namespace

std::vector<Pace> own_paces(const Scenario& scenario, double up_bytes, double down_bytes) {
  const std::vector<Worker> workers = workers_of(scenario, up_bytes, down_bytes);
  std::vector<Pace> paces(workers.size());
  double fastest_s = workers.front().step_s;
  for (const Worker& worker : workers) fastest_s = std::min(fastest_s, worker.step_s);
  const std::int64_t most = std::min(scenario.strategy.local_steps, optimizer_steps(scenario));
  for (std::size_t w = 0; w < workers.size(); ++w) {
    paces[w].local_steps = most;
    if (scenario.strategy.dynamic_local_steps && workers[w].step_s > 0)
      paces[w].local_steps = std::max<std::int64_t>(
          1, static_cast<std::int64_t>(
                 std::floor(static_cast<double>(most) * fastest_s / workers[w].step_s * (1 + 1e-12))));
  }

  const platforms::Platform platform = effective_platform(scenario.platform, scenario.network);
  const platforms::Site& server = platform.sites.front();
  const double busy_s = std::max({up_bytes / server.downlink_bytes_per_s,
                                  down_bytes / server.uplink_bytes_per_s, workers.front().applied_s});
  const double slower = slower_transfers(workers, paces, busy_s);
  double sequences_per_s = 0;
  const auto sequences = [&](std::size_t w) {
    return static_cast<double>(paces[w].local_steps * local_batch_sequences(scenario, static_cast<int>(w)));
  };
  for (std::size_t w = 0; w < paces.size(); ++w) {
    // A cycle without any duration cannot be told from others: all workers then have the same number of
    // cycles.
    paces[w].cycle_s = std::max(cycle_s(workers[w], paces[w].local_steps, slower), 1e-12);
    sequences_per_s += sequences(w) / paces[w].cycle_s;
  }
  double left = static_cast<double>(optimizer_steps(scenario) * scenario.workload.global_batch_sequences);
  const double run_s = left / sequences_per_s;
  for (std::size_t w = 0; w < paces.size(); ++w) {
    paces[w].cycles = static_cast<std::int64_t>(std::floor(run_s / paces[w].cycle_s * (1 + 1e-12)));
    left -= sequences(w) * static_cast<double>(paces[w].cycles);
  }
  // The workers whose next cycle would end first train the rest.
  while (left > 1e-9 * sequences(0)) {
    std::size_t next = 0;
    const auto end_s = [&](std::size_t w) {
      return static_cast<double>(paces[w].cycles + 1) * paces[w].cycle_s;
    };
    for (std::size_t w = 1; w < paces.size(); ++w) {
      if (end_s(w) < end_s(next)) next = w;
    }
    ++paces[next].cycles;
    left -= sequences(next);
  }
  return paces;
}

bool paces_differ(const Scenario& scenario, double up_bytes, double down_bytes) {
  const std::vector<Worker> workers = workers_of(scenario, up_bytes, down_bytes);
  const auto alike = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(a, b); };
  // Equal sites may have batches that differ by one sequence.
  const bool same_compute = scenario.site_compute.empty() && scenario.workload.batch_shares.empty();
  const auto step = [&](std::size_t w) {
    return same_compute ? scenario.platform.sites[w].compute_factor : workers[w].step_s;
  };
  for (std::size_t w = 1; w < workers.size(); ++w) {
    if (!alike(step(w), step(0)) ||
        !alike(workers[w].up_s + workers[w].down_s, workers[1].up_s + workers[1].down_s))
      return true;
  }
  return false;
}

}  // namespace fomoe::costmodel
