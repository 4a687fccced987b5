// Tests the way of payloads between a GPU and the host, and transfers between sites that one GPU trains.
#include "trainer/comm/staging.hpp"

#include "tests/trainer/support.hpp"
#include "trainer/comm/collectives.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

const at::Device kStagingGpu(at::kCUDA, 0);

/// What each node receives of a payload of 1,003 elements in bf16. Means are taken over two or four nodes, so
/// that they have the same bits on both devices: LibTorch divides by multiplying with the reciprocal on a
/// GPU.
std::vector<at::Tensor> received_values(costmodel::Pattern pattern, at::Device device) {
  const int count = pattern == costmodel::Pattern::reduce ? 3 : 4;
  std::vector<costmodel::Node> nodes;
  costmodel::Exchange exchange;
  for (int site = 0; site < count; ++site) {
    nodes.push_back({costmodel::NodeKind::worker, site, 1});
    exchange.nodes.push_back(site);
  }
  InProcessTransport transport(nodes);
  exchange.payloads.resize(1);
  exchange.payloads[0].elements = 1003;
  exchange.payloads[0].format = costmodel::plain_format(costmodel::ElementType::bf16);
  costmodel::Transfer work;
  work.pattern = pattern;
  work.exchanges.push_back(exchange);
  TransferOptions options;
  options.device = device;
  std::vector<at::Tensor> results;
  run_transfer(
      work, transport,
      [&](const PayloadAt& at) {
        at::manual_seed(40 + static_cast<std::uint64_t>(at.node));
        return at::randn({1003}).to(device);
      },
      [&](const PayloadAt&, const at::Tensor& values) { results.push_back(values); }, options);
  return results;
}

}  // namespace

TEST_CASE("bytes leave a GPU and come back through page-locked memory") {
  const at::Tensor bytes = at::randint(256, {1 << 20}, at::device(kStagingGpu).dtype(at::kByte));
  const at::Tensor host = on_host(bytes);
  CHECK(host.is_pinned());
  CHECK(at::equal(host, bytes.cpu()));
  CHECK(on_host(host).is_same(host));
  CHECK(host_buffer(16, kStagingGpu).is_pinned());
  CHECK(!host_buffer(16, at::kCPU).is_pinned());
  CHECK(on_device(bytes, at::kCPU).is_pinned());  // waits for the copy, which a plain .to() would not
  CHECK(at::equal(on_device(bytes, at::kCPU), host));
  // A segment may start at any byte of a message, and the message is released while it is still copied.
  at::Tensor message = on_host(bytes), segment;
  for (int again = 0; again < 20; ++again) {
    segment = on_device(message.narrow(0, 3, 1 << 19), kStagingGpu);
    message = at::Tensor();
    message = on_host(bytes);
  }
  CHECK(at::equal(segment, bytes.narrow(0, 3, 1 << 19)));
}

TEST_CASE("transfers between sites on one GPU give the CPU's values, and leave them on the GPU") {
  using costmodel::Pattern;
  for (const Pattern pattern :
       {Pattern::all_reduce, Pattern::all_to_all_broadcast, Pattern::reduce, Pattern::broadcast}) {
    CAPTURE(static_cast<int>(pattern));
    const std::vector<at::Tensor> expected = received_values(pattern, at::kCPU),
                                  got = received_values(pattern, kStagingGpu);
    REQUIRE(got.size() == expected.size());
    REQUIRE(!got.empty());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].device() == kStagingGpu);
      CHECK(at::equal(got[i].cpu(), expected[i]));
    }
  }
}
