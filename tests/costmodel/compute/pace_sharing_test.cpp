// Tests of the cycles of workers that share links.
#include "costmodel/compute/pace_sharing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace fomoe::costmodel;

namespace {

/// The cycle of a worker whose others use these shares of the time, by the equations of own_pace.hpp.
double cycle_with(const Worker& worker, double cycle_s, const std::vector<double>& used) {
  double up_s = worker.up_s, down_s = worker.down_s;
  for (const Use& use : worker.uses) {
    // With fragments, both transfers of a worker are under way at once.
    const double of_both = worker.fragments > 1 ? 0 : use.all_s();
    up_s = std::max(up_s, use.up_s / (1 - used[use.shared] + (of_both > 0 ? of_both : use.up_s) / cycle_s));
    down_s = std::max(down_s,
                      use.down_s / (1 - used[use.shared] + (of_both > 0 ? of_both : use.down_s) / cycle_s));
  }
  const double fragment_s = (worker.alone_s + up_s + down_s) / worker.fragments;
  if (worker.fragments == 1) return std::max(fragment_s, worker.steps_s);
  return std::max({fragment_s, worker.steps_s, up_s + worker.up_late_s, down_s + worker.down_late_s});
}

/// Workers that use a server's two links, and some of them further links.
std::vector<Worker> drawn_workers(std::mt19937& random, std::size_t links) {
  const auto log_uniform = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<>(std::log(low), std::log(high))(random));
  };
  const double payload = log_uniform(1e-3, 1e3);
  const double fragments = random() % 2 ? 1 : 4;
  std::vector<Worker> workers(2 + random() % 7);
  for (Worker& worker : workers) {
    worker.fragments = fragments;
    worker.steps_s = log_uniform(0.1, 100);
    worker.up_late_s = log_uniform(1e-3, 1);
    worker.down_late_s = log_uniform(1e-3, 1);
    worker.alone_s = worker.steps_s + worker.up_late_s + worker.down_late_s;
    worker.up_s = payload * log_uniform(0.1, 10);
    worker.down_s = payload * log_uniform(0.1, 10);
    worker.uses = {{0, payload, 0}, {1, 0, payload * log_uniform(0.3, 3)}};
    for (std::size_t link = 2; link < links; ++link)
      if (random() % 2)
        worker.uses.push_back({link, payload * log_uniform(0.1, 3), random() % 2 ? payload : 0});
  }
  return workers;
}

}  // namespace

TEST_CASE("shared cycles: drawn workers meet the equations, and no link is used more than fully") {
  std::mt19937 random(20261130);
  double busiest = 0;
  for (int draw = 0; draw < 3000; ++draw) {
    CAPTURE(draw);
    const std::size_t links = 2 + random() % 4;
    const std::vector<Worker> workers = drawn_workers(random, links);
    const std::vector<Cycle> cycles = shared_cycles(workers, links);
    std::vector<double> used(links, 0);
    for (std::size_t w = 0; w < workers.size(); ++w)
      for (const Use& use : workers[w].uses) used[use.shared] += use.all_s() / cycles[w].all_s;
    const double most = *std::max_element(used.begin(), used.end());
    busiest = std::max(busiest, most);
    REQUIRE(most < 1);
    for (std::size_t w = 0; w < workers.size(); ++w) {
      CHECK(cycle_with(workers[w], cycles[w].all_s, used) == doctest::Approx(cycles[w].all_s).epsilon(1e-6));
    }
  }
  CHECK(busiest > 0.99);
}
