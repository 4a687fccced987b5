// Runs short measurements in several sites at once, each in a separate process.
#pragma once
#include <functional>
#include <vector>

#include "platforms/wan/network/isolation.hpp"

namespace fomoe::platforms::wan {

struct Task {
  int site = 0;
  std::function<double()> work;
  bool background = false;  // whether it is killed when all other tasks have ended; its answer is not used
  // Whether it runs with the relay's priority. It then measures the relay, and not its own wait for a core.
  bool prompt = false;
};

/// A signal asked this program to end.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal) : std::runtime_error("interrupted"), signal_(signal) {}
  [[nodiscard]] int signal() const { return signal_; }

 private:
  int signal_;
};

/// Runs all tasks at the same time, and returns their answers in the tasks' order. Throws Refusal if a task
/// fails, and Interrupted on SIGINT, SIGTERM or SIGHUP, which must be blocked. `cores` holds the CPU cores of
/// each site; if it is empty, any core may be used.
std::vector<double> run_tasks(const std::vector<SiteNetwork>& sites,
                              const std::vector<std::vector<int>>& cores, const std::vector<Task>& tasks);

/// Sleeps for `seconds`. Throws Interrupted if one of these signals arrives.
void pause_for(double seconds);

}  // namespace fomoe::platforms::wan
