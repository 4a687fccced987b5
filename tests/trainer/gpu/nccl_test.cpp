// Tests messages between two GPUs over NCCL. With fewer than two GPUs it says so and checks nothing.
#include <ATen/cuda/CUDAContext.h>

#include <future>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "tests/trainer/support.hpp"
#include "trainer/comm/rank_transports.hpp"

using namespace fomoe::trainer;
namespace costmodel = fomoe::costmodel;

TEST_CASE("two ranks over NCCL: what one sends the other has, several messages and phases at a time") {
  if (at::cuda::device_count() < 2) {
    MESSAGE("skipped: two GPUs are needed, here is " << static_cast<int>(at::cuda::device_count()));
    return;
  }
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto rank = [&](int own) {
    RankTransportOptions options;
    options.nodes = {{costmodel::NodeKind::worker, 0, 1},
                     {costmodel::NodeKind::worker, 1, 1},
                     {costmodel::NodeKind::server, 0, 0}};
    options.names = {"first", "second"};
    options.rank = options.site = own;
    options.rank_of_site = {0, 1};
    options.timeout_s = 60;
    options.device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(own));
    options.store = store;
    const auto transport = nccl_transport(options);
    CHECK(!transport->concurrent());
    for (std::int64_t phase = 0; phase < 3; ++phase) {
      std::vector<Message> messages;
      for (const auto& [from, to] : {std::pair{0, 1}, std::pair{1, 0}, std::pair{1, 2}, std::pair{2, 1}}) {
        Message message;
        message.from = from;
        message.to = to;
        message.bytes_of[0] = 1000 + phase;
        message.used_on = phase == 0 ? at::Device(at::kCPU) : options.device;
        if (transport->hosts(from))
          message.sent = at::full({1000 + phase}, 10 * from + to + phase, at::kByte);
        messages.push_back(message);
      }
      transport->exchange(messages);
      for (const Message& message : messages) {
        if (!transport->hosts(message.to)) continue;
        CHECK(message.received.device() == message.used_on);
        CHECK(at::equal(message.received.cpu(),
                        at::full({1000 + phase}, 10 * message.from + message.to + phase, at::kByte)));
      }
    }
  };
  auto other = std::async(std::launch::async, rank, 1);
  rank(0);
  other.get();
}
