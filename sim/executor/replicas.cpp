#include "sim/executor/replicas.hpp"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "platforms/support/child.hpp"

namespace fomoe::sim {

namespace {

struct Answer {
  double wall_clock_s = 0, compute_utilization = 0;
};

}  // namespace

void add_replicas(costmodel::RunReport& report, const costmodel::Scenario& scenario, const Simulate& simulate,
                  std::int64_t count) {
  std::vector<double> wall_clock_s = {report.wall_clock_s}, utilization = {report.compute_utilization};
  std::deque<Child> running;
  const auto collect = [&] {
    Answer answer;
    running.front().get(answer);
    running.front().finish();
    running.pop_front();
    wall_clock_s.push_back(answer.wall_clock_s);
    utilization.push_back(answer.compute_utilization);
  };
  const auto cores = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  for (std::int64_t replica = 1; replica < count; ++replica) {
    if (running.size() == cores) collect();
    running.emplace_back([&, replica](ChildOutput& output) {
      costmodel::Scenario seeded = scenario;
      seeded.seed = scenario.seed + static_cast<std::uint64_t>(replica);
      const costmodel::RunReport other = simulate(seeded);
      output.put(Answer{other.wall_clock_s, other.compute_utilization});
    });
  }
  while (!running.empty()) collect();

  costmodel::Replicas replicas;
  replicas.count = count;
  replicas.first_seed = scenario.seed;
  replicas.wall_clock_s = costmodel::spread_of(wall_clock_s);
  replicas.compute_utilization = costmodel::spread_of(utilization);
  report.replicas = replicas;
  if (std::all_of(wall_clock_s.begin(), wall_clock_s.end(), [&](double s) { return s == wall_clock_s[0]; }))
    report.notes.push_back(
        "all replicas took the same time, because the scenario uses nothing that depends on the seed (random "
        "placement, jitter)");
}

}  // namespace fomoe::sim
