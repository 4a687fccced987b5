// The relay process: it reads packets from every site's interface, and writes each packet to its destination
// at the time that the emulated links determine.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "platforms/wan/network/isolation.hpp"
#include "platforms/wan/network/layout.hpp"

namespace fomoe::platforms::wan {

/// Counters of the relay, in memory that it shares with the process that started it.
struct RelayStatistics {
  std::atomic<std::uint64_t> packets, drops;
  std::atomic<double> bytes;
  std::atomic<double> late_s;       // sum over packets of (time written − time due)
  std::atomic<double> most_late_s;  // maximum over packets of the same
};

/// A relay process that runs until this object is destroyed or stop() is called.
class Relay {
 public:
  /// `core` is the only CPU core that the relay may run on; any core if negative.
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

/// The time of CLOCK_MONOTONIC in seconds.
double monotonic_s();

/// Restricts this process to these cores.
void run_on(const std::vector<int>& cores);

}  // namespace fomoe::platforms::wan
