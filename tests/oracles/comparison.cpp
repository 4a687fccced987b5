#include "tests/oracles/comparison.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "sim/executor/simulate.hpp"

namespace fomoe::oracles {

std::vector<double> fomoe_end_s(const costmodel::Plan& plan, const platforms::Platform& raw,
                                const costmodel::NetworkModel& network, double compute_s) {
  sim::Options options;
  options.network = network;
  const costmodel::Timeline timeline = sim::simulate(
      plan, {0}, costmodel::effective_platform(raw, network), [=](auto&&...) { return compute_s; }, options);
  std::vector<double> end_s(plan.nodes.size(), 0);
  for (const auto& interval : timeline.intervals) {
    double& end = end_s[static_cast<std::size_t>(interval.node)];
    end = std::max(end, interval.end_s);
  }
  return end_s;
}

double latest(const std::vector<double>& end_s) { return *std::max_element(end_s.begin(), end_s.end()); }

std::string output_of(const std::string& command) {
  std::fflush(nullptr);
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string output;
  std::array<char, 4096> block{};
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), pipe))
    output.append(block.data(), got);
  if (pclose(pipe) != 0) throw std::runtime_error(command + "\nfailed:\n" + output);
  return output;
}

void tell(const Row& row) {
  char numbers[120];
  std::snprintf(numbers, sizeof numbers, "%.4f | %.4f | %+.1f %%", row.fomoe_s, row.oracle_s,
                100 * (row.fomoe_s / row.oracle_s - 1));
  const std::string line = "| " + row.name + " | " + numbers + " | " + row.cause + " |";
  std::printf("%s\n", line.c_str());
  if (const char* file = std::getenv("FOMOE_ORACLE_TABLE"))
    std::ofstream(file, std::ios::app) << line << '\n';
}

}  // namespace fomoe::oracles
