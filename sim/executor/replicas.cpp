#include "sim/executor/replicas.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "platforms/support/children.hpp"

namespace fomoe::sim {

namespace {

struct Answer {
  double wall_clock_s = 0, compute_utilization = 0;
};

}  // namespace

void add_replicas(costmodel::RunReport& report, const costmodel::Scenario& scenario, const Simulate& simulate,
                  std::int64_t count) {
  std::vector<double> wall_clock_s = {report.wall_clock_s}, utilization = {report.compute_utilization};
  const auto answer_of = [&](std::size_t other) {
    costmodel::Scenario seeded = scenario;
    seeded.seed = scenario.seed + other + 1;
    const costmodel::RunReport answer = simulate(seeded);
    return Answer{answer.wall_clock_s, answer.compute_utilization};
  };
  for (const Answer& answer : in_children<Answer>(static_cast<std::size_t>(count - 1), answer_of)) {
    wall_clock_s.push_back(answer.wall_clock_s);
    utilization.push_back(answer.compute_utilization);
  }

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
