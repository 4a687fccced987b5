// Short measurements in several sites at once, each in a process of its own.
#pragma once
#include <functional>
#include <vector>

#include "platforms/wan/network/isolation.hpp"

namespace fomoe::platforms::wan {

struct Task {
  int site = 0;
  std::function<double()> work;
  bool background = false;  // ended when all others have; its answer is not used
  // With the relay's priority: what it times is then the relay, and not how long it waits for a core itself.
  bool prompt = false;
};

/// Somebody asked this program to end.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal) : std::runtime_error("interrupted"), signal_(signal) {}
  [[nodiscard]] int signal() const { return signal_; }

 private:
  int signal_;
};

/// The answers in the tasks' order. Throws Refusal where one fails, Interrupted on SIGINT, SIGTERM or SIGHUP,
/// which must be blocked. `cores` per site: empty for any.
std::vector<double> run_tasks(const std::vector<SiteNetwork>& sites,
                              const std::vector<std::vector<int>>& cores, const std::vector<Task>& tasks);

/// Waits, unless a signal comes, which throws Interrupted.
void pause_for(double seconds);

}  // namespace fomoe::platforms::wan
