#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include <chrono>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "trainer/comm/plain_reason.hpp"
#include "trainer/comm/rank_transports.hpp"
#include "trainer/comm/staging.hpp"

namespace fomoe::trainer {
namespace {

class NcclTransport : public Transport {
 public:
  NcclTransport(const RankTransportOptions& options, c10::intrusive_ptr<c10d::Backend> group)
      : Transport(options.nodes, nodes_of_site(options.nodes, options.site, options.hosts_store)),
        names_(options.names),
        rank_of_site_(options.rank_of_site),
        device_(options.device),
        group_(std::move(group)) {
    // The first call creates the communicator, and all ranks must take part in it; later calls need not.
    const c10::cuda::CUDAGuard guard(device_);
    std::vector<at::Tensor> nothing = {at::zeros({1}, at::device(device_).dtype(at::kByte))};
    group_->allreduce(nothing)->wait();
    at::cuda::getCurrentCUDAStream().synchronize();
  }

  [[nodiscard]] bool concurrent() const override { return false; }

 protected:
  // One group of sends and receives, in the order of the messages, which both ends sort by (from, to). All
  // memory is allocated before the group begins. If a send or receive is refused nevertheless, the group is
  // ended, since NCCL would add the next exchange to it.
  void move(const std::vector<Message*>& messages, int /*channel*/) override {
    const c10::cuda::CUDAGuard guard(device_);
    std::vector<at::Tensor> buffers;
    for (const Message* message : messages) {
      buffers.push_back(hosts(message->from)
                            ? on_device(message->sent, device_)
                            : at::empty({message->bytes()}, at::device(device_).dtype(at::kByte)));
    }
    int partner = other_end(*messages.front());
    bool grouping = false;
    try {
      group_->startCoalescing();
      grouping = true;
      for (std::size_t m = 0; m < messages.size(); ++m) {
        const bool sending = hosts(messages[m]->from);
        partner = other_end(*messages[m]);
        std::vector<at::Tensor> buffer = {buffers[m]};
        if (sending) {
          group_->send(buffer, partner, /*tag=*/0);
        } else {
          group_->recv(buffer, partner, /*tag=*/0);
        }
      }
      grouping = false;
      group_->endCoalescing()->wait();
      for (std::size_t m = 0; m < messages.size(); ++m) {
        if (!hosts(messages[m]->from))
          messages[m]->received = messages[m]->used_on.is_cuda() ? buffers[m] : on_host(buffers[m]);
      }
    } catch (const std::exception& error) {
      if (grouping) end_group();
      throw SiteLost(names_[static_cast<std::size_t>(partner)] + " (rank " + std::to_string(partner) +
                     ") or another site of this exchange is lost: " + plain_reason(error));
    }
  }

 private:
  [[nodiscard]] int other_end(const Message& message) const {
    const costmodel::NodeId node = hosts(message.from) ? message.to : message.from;
    return rank_of_site_[static_cast<std::size_t>(nodes()[static_cast<std::size_t>(node)].site)];
  }
  void end_group() {
    try {
      group_->endCoalescing();
    } catch (const std::exception&) {  // the first error is the one to report
    }
  }

  std::vector<std::string> names_;
  std::vector<int> rank_of_site_;
  at::Device device_;
  c10::intrusive_ptr<c10d::Backend> group_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> nccl_backend(const RankTransportOptions& options) {
  // Without this, a thread of NCCL ends the process when a site is lost, before the error can name the site.
  ::setenv("TORCH_NCCL_BLOCKING_WAIT", "1", /*overwrite=*/0);
  auto how = c10d::ProcessGroupNCCL::Options::create();
  how->timeout = std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * options.timeout_s));
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(options.store, options.rank,
                                                     static_cast<int>(options.names.size()), how);
}

std::unique_ptr<Transport> nccl_transport(const RankTransportOptions& options) {
  return std::make_unique<NcclTransport>(options, nccl_backend(options));
}

}  // namespace fomoe::trainer
