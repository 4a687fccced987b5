// The last file by name: how well LibTorch goes on after a recording that failed is not in our hands.
#include "tests/trainer/support.hpp"
#include "trainer/device_graph.hpp"

using namespace fomoe::trainer;

TEST_CASE("what cannot be recorded says so, and the device can still be used") {
  DeviceGraph graph(graph_pool(at::Device(at::kCUDA, 0)));
  const at::Tensor value = at::ones({}, at::kCUDA);
  const auto reads = [&] { (void)value.item<double>(); };
  for (int call = 0; call < DeviceGraph::kPlainCalls; ++call) graph.plain(reads);
  CHECK_THROWS_AS(graph.launch(reads), c10::Error);
  CHECK(at::ones({3}, at::kCUDA).sum().item<double>() == 3);
}
