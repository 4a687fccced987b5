#include "trainer/comm/rank_transports.hpp"

#include <unistd.h>

#include <set>

#include "trainer/device/cuda_device.hpp"

namespace fomoe::trainer {

std::string device_identity(const at::Device& device) {
  if (!device.is_cuda()) return "cpu";
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  // Two processes may number the machine's GPUs differently, but not the slots that these are in.
  return "cuda " + std::string(host) + ' ' + cuda_slot(device);
}

bool own_gpu_each(const std::vector<std::string>& identities) {
  const std::set<std::string> distinct(identities.begin(), identities.end());
  return distinct.size() == identities.size() && !distinct.contains("cpu");
}

}  // namespace fomoe::trainer
