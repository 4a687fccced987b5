// The time that a device needs for work that has several parts, such as an optimiser step.
#pragma once
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace fomoe::trainer {

class CudaEvent;

/// Adds up the time between calls of start() and stop(). On a GPU, that is the time between two events on the
/// current stream, since the host only queues the work and runs ahead. It includes the time in which the
/// device waits for the host.
class Stopwatch {
 public:
  explicit Stopwatch(bool cuda = false) : cuda_(cuda) {}
  void start();
  void stop();
  /// Adds time that was not measured by this object.
  void add(double seconds) { seconds_ += seconds; }
  /// The sum in seconds. On a GPU, waits until the device has finished the last part.
  [[nodiscard]] double seconds() const;

 private:
  bool cuda_;
  double seconds_ = 0;
  std::chrono::steady_clock::time_point begin_;
  std::vector<std::pair<std::shared_ptr<CudaEvent>, std::shared_ptr<CudaEvent>>> parts_;
};

}  // namespace fomoe::trainer
