// Device work that is the same in each call, recorded once as a CUDA graph and then launched by one call
// (CUDA C++ programming guide, "CUDA graphs"). A training step is about a thousand kernels, and launching
// each of them from the host takes longer than a fast GPU needs to compute them.
//
// A recording contains operations with their constants and addresses. So the recorded work must
//   - not read values of a tensor on the host, nor have shapes that depend on values,
//   - take inputs that differ between calls from tensors that stay at their addresses,
//   - leave its results in the tensors of the recorded call, which the user of the results must keep.
// tests/trainer/step/repeatable_step_test.cpp checks the first requirement for a training step, on a CPU.
#pragma once
#include <functional>
#include <memory>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// The memory and the stream that several graphs share. The graphs must be launched in the order in which
/// they were recorded, since a later graph may use memory that an earlier one has freed.
struct GraphPool;
/// Makes the pool of a CUDA device. Throws in a build without CUDA.
std::shared_ptr<GraphPool> graph_pool(at::Device device);

class DeviceGraph {
 public:
  /// Number of calls that run the work directly before it is recorded, since libraries initialise themselves
  /// in their first calls.
  static constexpr int kPlainCalls = 3;

  /// Without a pool nothing is recorded, and launch() runs the work each time.
  explicit DeviceGraph(std::shared_ptr<GraphPool> pool);
  ~DeviceGraph();

  /// Runs the work directly, on the stream that recordings use. It is ordered with the calling thread's own
  /// stream as if it ran there.
  void plain(const std::function<void()>& work);
  /// Runs the work on the device. The first call records the work, and later calls launch the recording
  /// instead of calling `work`. Throws what the work throws. Throws c10::Error if the work cannot be
  /// recorded; the process should then end, since LibTorch does not recover completely.
  void launch(const std::function<void()>& work);

 private:
  struct Recording;
  void record(const std::function<void()>& work);
  void give_up() const;

  std::shared_ptr<GraphPool> pool_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace fomoe::trainer
