// Tests work that cannot be recorded. It must be the last file by name, since LibTorch may not recover after
// a failed recording.
#include "tests/trainer/support.hpp"
#include "trainer/step/device_graph.hpp"

using namespace fomoe::trainer;

TEST_CASE("what cannot be recorded says so, and the device can still be used") {
  DeviceGraph graph(graph_pool(at::Device(at::kCUDA, 0)));
  const at::Tensor value = at::ones({}, at::kCUDA);
  const auto reads = [&] { (void)value.item<double>(); };
  for (int call = 0; call < DeviceGraph::kPlainCalls; ++call) graph.plain(reads);
  CHECK_THROWS_AS(graph.launch(reads), c10::Error);
  CHECK(at::ones({3}, at::kCUDA).sum().item<double>() == 3);
}
