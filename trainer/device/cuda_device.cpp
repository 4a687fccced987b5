#include "trainer/device/cuda_device.hpp"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <vector>

namespace fomoe::trainer {
namespace {

std::string version(int number) {  // 13000 → "13.0"
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

// The device whose memory LibTorch's allocator is asked about. LibTorch sets the allocator up with the
// process's first tensor on a GPU; before that, the allocator refuses every device, so it is set up here.
c10::DeviceIndex allocator_device() {
  at::globalContext().lazyInitDevice(at::kCUDA);
  return at::cuda::current_device();
}

}  // namespace

bool cuda_available() { return at::cuda::is_available(); }
std::string why_no_cuda() { return "there is no usable CUDA device on this machine"; }
std::string cuda_name() { return at::cuda::getCurrentDeviceProperties()->name; }
int cuda_device_count() { return at::cuda::device_count(); }
void set_cuda_device(at::Device device) { c10::cuda::set_device(device.index()); }

int compute_capability(at::Device device) {
  const cudaDeviceProp* properties = at::cuda::getDeviceProperties(device.index());
  return 10 * properties->major + properties->minor;
}

void prefer_cudnn_attention(at::Device device) {
  const int capability = compute_capability(device);
  if (capability / 10 != 9 && capability / 10 != 10) return;
  std::vector<std::int64_t> order;
  for (const at::SDPBackend back_end :
       {at::SDPBackend::cudnn_attention, at::SDPBackend::flash_attention, at::SDPBackend::efficient_attention,
        at::SDPBackend::math, at::SDPBackend::overrideable})
    order.push_back(static_cast<std::int64_t>(back_end));
  at::globalContext().setSDPPriorityOrder(order);
}

std::string cuda_slot(at::Device device) {
  const cudaDeviceProp* properties = at::cuda::getDeviceProperties(device.index());
  return std::to_string(properties->pciDomainID) + ':' + std::to_string(properties->pciBusID) + ':' +
         std::to_string(properties->pciDeviceID);
}

void wait_for_device(at::Device device) { at::cuda::getCurrentCUDAStream(device.index()).synchronize(); }

std::string cuda_versions() {
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  return "CUDA runtime " + version(runtime) + (driver > 0 ? ", driver " + version(driver) : ", no driver");
}

void free_matrix_workspaces() { at::cuda::clearCublasWorkspaces(); }

void reset_peak_cuda_memory() {
  const c10::DeviceIndex device = allocator_device();
  c10::cuda::CUDACachingAllocator::emptyCache();
  c10::cuda::CUDACachingAllocator::resetPeakStats(device);
}

std::int64_t peak_cuda_memory_bytes() {
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return c10::cuda::CUDACachingAllocator::getDeviceStats(allocator_device()).allocated_bytes[kAll].peak;
}

struct CudaEvent::Event {
  at::cuda::CUDAEvent event{cudaEventDefault};  // with timing
};

CudaEvent::CudaEvent() : event_(std::make_unique<Event>()) {}
CudaEvent::~CudaEvent() = default;
void CudaEvent::record() { event_->event.record(); }
void CudaEvent::wait() { event_->event.synchronize(); }
double CudaEvent::seconds_until(const CudaEvent& later) const {
  return 1e-3 * static_cast<double>(event_->event.elapsed_time(later.event_->event));  // given in ms
}

}  // namespace fomoe::trainer
