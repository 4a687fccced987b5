#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include <chrono>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "trainer/comm/rank_transports.hpp"

namespace fomoe::trainer {
namespace {

class NcclTransport : public Transport {
 public:
  NcclTransport(const RankTransportOptions& options, c10::intrusive_ptr<c10d::Backend> group)
      : Transport(options.nodes, nodes_of_site(options.nodes, options.site)),
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
  // One group of sends and receives, in the order of the messages, which both ends sort by (from, to).
  void move(const std::vector<Message*>& messages, int /*channel*/) override {
    const c10::cuda::CUDAGuard guard(device_);
    std::vector<at::Tensor> buffers;
    int partner = -1;
    try {
      group_->startCoalescing();
      for (Message* message : messages) {
        const bool sending = hosts(message->from);
        const costmodel::NodeId other = sending ? message->to : message->from;
        partner = rank_of_site_[static_cast<std::size_t>(nodes()[static_cast<std::size_t>(other)].site)];
        buffers.push_back(sending ? message->sent.to(device_)
                                  : at::empty({message->bytes()}, at::device(device_).dtype(at::kByte)));
        std::vector<at::Tensor> buffer = {buffers.back()};
        if (sending) {
          group_->send(buffer, partner, /*tag=*/0);
        } else {
          group_->recv(buffer, partner, /*tag=*/0);
        }
      }
      group_->endCoalescing()->wait();
      for (std::size_t m = 0; m < messages.size(); ++m) {
        if (!hosts(messages[m]->from)) messages[m]->received = buffers[m].cpu();
      }
    } catch (const std::exception& error) {
      const std::string reason = error.what();
      throw SiteLost(names_[static_cast<std::size_t>(partner)] + " (rank " + std::to_string(partner) +
                     ") or another site of this exchange is lost: " + reason.substr(0, reason.find('\n')));
    }
  }

 private:
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
