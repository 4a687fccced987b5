#include "trainer/step/device_graph.hpp"

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace fomoe::trainer {
namespace {

/// In its scope, work goes to the stream `side`. That work is ordered after all earlier and before all later
/// work of the thread's own stream.
class OnSideStream {
 public:
  explicit OnSideStream(c10::cuda::CUDAStream side)
      : own_(c10::cuda::getCurrentCUDAStream(side.device_index())), side_(side) {
    after(own_, side_);
    c10::cuda::setCurrentCUDAStream(side_);
  }
  ~OnSideStream() {
    c10::cuda::setCurrentCUDAStream(own_);
    try {
      after(side_, own_);
    } catch (const c10::Error&) {  // the device has failed; the next call to it reports that
    }
  }
  OnSideStream(const OnSideStream&) = delete;
  OnSideStream& operator=(const OnSideStream&) = delete;

 private:
  static void after(c10::cuda::CUDAStream first, c10::cuda::CUDAStream then) {
    at::cuda::CUDAEvent event;
    event.record(first);
    event.block(then);
  }
  c10::cuda::CUDAStream own_, side_;
};

}  // namespace

struct GraphPool {
  at::Device device;
  c10::cuda::CUDAStream stream;
  at::cuda::MempoolId_t memory;
};

std::shared_ptr<GraphPool> graph_pool(at::Device device) {
  return std::make_shared<GraphPool>(
      GraphPool{device, c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()),
                at::cuda::graph_pool_handle()});
}

struct DeviceGraph::Recording {
  at::cuda::CUDAGraph graph;
};

DeviceGraph::DeviceGraph(std::shared_ptr<GraphPool> pool) : pool_(std::move(pool)) {}
DeviceGraph::~DeviceGraph() = default;

void DeviceGraph::plain(const std::function<void()>& work) {
  if (!pool_) return work();
  const c10::cuda::CUDAGuard guard(pool_->device);
  const OnSideStream side(pool_->stream);
  work();
}

void DeviceGraph::launch(const std::function<void()>& work) {
  if (!pool_) return work();
  const c10::cuda::CUDAGuard guard(pool_->device);
  if (!recording_) record(work);
  recording_->graph.replay();
}

void DeviceGraph::record(const std::function<void()>& work) {
  const OnSideStream side(pool_->stream);
  // Release cached blocks of the direct calls, which would otherwise occupy memory beside the graph's own.
  c10::cuda::CUDACachingAllocator::emptyCache();
  recording_ = std::make_unique<Recording>();
  // Other threads may continue on their own streams during the recording.
  recording_->graph.capture_begin(pool_->memory, cudaStreamCaptureModeThreadLocal);
  try {
    work();
  } catch (...) {
    // A recording must be ended before its stream can be used again. Ending it fails too, which is expected.
    try {
      recording_->graph.capture_end();
    } catch (const c10::Error&) {
      give_up();
    }
    recording_.reset();
    throw;
  }
  try {
    recording_->graph.capture_end();
  } catch (const c10::Error&) {
    give_up();
    recording_.reset();
    throw;
  }
}

// LibTorch tells its allocator when a recording ends, but not when ending it fails.
void DeviceGraph::give_up() const {
  c10::cuda::CUDACachingAllocator::endAllocateToPool(pool_->device.index(), pool_->memory);
}

}  // namespace fomoe::trainer
