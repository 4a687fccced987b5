// Work that asks the same of a device each time, launched as a whole. A training step is some thousand
// kernels, and a host that launches each of them is slower than a fast GPU that computes them: a CUDA graph
// is recorded once and launched by one call (CUDA C++ programming guide, "CUDA graphs").
//
// What is recorded are operations with their constants and addresses. So such work
//   - reads nothing of a tensor's values on the host, and no shape of it depends on them,
//   - takes what differs from call to call out of tensors that stay where they are,
//   - leaves its results in the tensors of the call that was recorded, which whoever needs them keeps.
// tests/trainer/repeatable_step_test.cpp holds a training step to the first of these, on a CPU.
//
// Not run on a GPU yet: tests/trainer/gpu/device_graph_test.cpp waits for a machine with one.
#pragma once
#include <functional>
#include <memory>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// Memory, and the stream that is recorded on, of graphs that are launched in turn, in the order in which
/// they were recorded: what one has freed the next may use.
struct GraphPool;
/// For a CUDA device; throws in a build without CUDA.
std::shared_ptr<GraphPool> graph_pool(at::Device device);

class DeviceGraph {
 public:
  /// How often work is to be done plainly before it is recorded: libraries set themselves up at their first
  /// calls.
  static constexpr int kPlainCalls = 3;

  /// Without a pool it never records: the work is done each time.
  explicit DeviceGraph(std::shared_ptr<GraphPool> pool);
  ~DeviceGraph();

  /// Does the work, on the stream that would be recorded on. To the calling thread's own stream it is as if
  /// it had been done there.
  void plain(const std::function<void()>& work);
  /// Has the device do the work, which is recorded at the first call and never called again. Throws what the
  /// work throws; c10::Error where the work cannot be recorded, after which the process should end: LibTorch
  /// does not wholly recover.
  void launch(const std::function<void()>& work);

 private:
  struct Recording;
  void record(const std::function<void()>& work);
  void give_up() const;

  std::shared_ptr<GraphPool> pool_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace fomoe::trainer
