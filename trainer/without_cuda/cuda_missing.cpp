// Replaces cuda_device.cpp, device_graph.cpp and nccl_transport.cpp in a build without CUDA.
#include "trainer/comm/rank_transports.hpp"
#include "trainer/device/cuda_device.hpp"
#include "trainer/step/device_graph.hpp"

namespace fomoe::trainer {
namespace {

// Callers check cuda_available() before they choose a GPU, so no caller reaches this function.
[[noreturn]] void missing() { TORCH_CHECK(false, why_no_cuda()); }

}  // namespace

bool cuda_available() { return false; }
std::string why_no_cuda() {
  return "this fomoe-train was built without CUDA (to build it with CUDA: bash tools/setup.sh && cmake "
         "--preset release && cmake --build --preset release)";
}
std::string cuda_name() { missing(); }
std::string cuda_versions() { return "without CUDA"; }
int cuda_device_count() { return 0; }
void set_cuda_device(at::Device) { missing(); }
void wait_for_device(at::Device) { missing(); }
int compute_capability(at::Device) { missing(); }
void prefer_cudnn_attention(at::Device) { missing(); }
std::string cuda_slot(at::Device) { missing(); }
void free_matrix_workspaces() { missing(); }
void reset_peak_cuda_memory() { missing(); }
std::int64_t peak_cuda_memory_bytes() { missing(); }

struct CudaEvent::Event {};
CudaEvent::CudaEvent() { missing(); }
CudaEvent::~CudaEvent() = default;
void CudaEvent::record() { missing(); }
void CudaEvent::wait() { missing(); }
double CudaEvent::seconds_until(const CudaEvent&) const { missing(); }

// Without a pool, launch() runs the work directly each time, as it does on a GPU without a pool.
struct GraphPool {};
struct DeviceGraph::Recording {};
std::shared_ptr<GraphPool> graph_pool(at::Device) { missing(); }
DeviceGraph::DeviceGraph(std::shared_ptr<GraphPool> pool) : pool_(std::move(pool)) {}
DeviceGraph::~DeviceGraph() = default;
void DeviceGraph::plain(const std::function<void()>& work) { work(); }
void DeviceGraph::launch(const std::function<void()>& work) { work(); }

std::unique_ptr<Transport> nccl_transport(const RankTransportOptions&) { missing(); }
c10::intrusive_ptr<c10d::Backend> nccl_backend(const RankTransportOptions&) { missing(); }

}  // namespace fomoe::trainer
