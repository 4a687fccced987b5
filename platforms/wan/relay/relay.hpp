// The relay as a process: reads every site's interface, and writes each packet where and when it is due.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "platforms/wan/network/isolation.hpp"
#include "platforms/wan/network/layout.hpp"

namespace fomoe::platforms::wan {

/// Kept in memory that the relay shares with whoever started it.
struct RelayStatistics {
  std::atomic<std::uint64_t> packets, drops;
  std::atomic<double> bytes;
  std::atomic<double> late_s;       // summed over packets: written after they were due
  std::atomic<double> most_late_s;  // worst of them
};

/// A relay that runs until this object ends.
class Relay {
 public:
  /// `core`: the only one it may run on; negative: any.
  Relay(const Layout& layout, const std::vector<SiteNetwork>& sites, int core);
  ~Relay() { stop(); }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  void stop();
  [[nodiscard]] pid_t process() const { return process_; }
  [[nodiscard]] const RelayStatistics& statistics() const { return *statistics_; }

 private:
  RelayStatistics* statistics_;
  pid_t process_ = -1;
};

/// CLOCK_MONOTONIC
double monotonic_s();

/// Restricts this process to these cores.
void run_on(const std::vector<int>& cores);

}  // namespace fomoe::platforms::wan
