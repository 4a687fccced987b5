#include <algorithm>
#include <chrono>
#include <mutex>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "costmodel/inputs/network_model.hpp"
#include "trainer/comm/plain_reason.hpp"
#include "trainer/comm/rank_transports.hpp"
#include "trainer/comm/staging.hpp"

namespace fomoe::trainer {
namespace {

/// Point-to-point messages over Gloo; one rank hosts the nodes of one site. A large message is divided into
/// as many parts as there are groups.
class GlooTransport : public Transport {
 public:
  GlooTransport(const RankTransportOptions& options, std::vector<c10::intrusive_ptr<c10d::Backend>> groups)
      : Transport(options.nodes, nodes_of_site(options.nodes, options.site, options.hosts_store)),
        names_(options.names),
        rank_of_site_(options.rank_of_site),
        groups_(std::move(groups)) {
    std::vector<int> seen(options.nodes.size(), 0);
    for (const costmodel::Node& node : options.nodes) {
      place_.push_back(seen.at(static_cast<std::size_t>(node.site))++);
      if (place_.back() > 1) throw std::logic_error("a site has more than one worker and one server");
    }
  }

 protected:
  void post(const std::vector<Message*>& messages, int channel) override {
    for (Message* message : messages) {
      const int partner = rank_of(message->from);
      try {
        message->posted = receive(*message, channel);
      } catch (const std::exception& error) {
        lost(partner, error);
      }
    }
  }

  void move(const std::vector<Message*>& messages, int channel) override {
    int partner = -1;
    try {
      // Post the receives first, so that arriving data finds its buffer.
      for (Message* message : messages) {
        if (hosts(message->from) || message->posted) continue;
        partner = rank_of(message->from);
        message->posted = receive(*message, channel);
      }
      std::vector<std::pair<int, c10::intrusive_ptr<c10d::Work>>> pending;  // with the partner
      std::vector<at::Tensor> in_host_memory;                               // until they have been sent
      for (const Message* message : messages) {
        if (!hosts(message->from)) {
          const auto& parts = static_cast<const Receive&>(*message->posted).parts;
          for (const auto& part : parts) pending.emplace_back(rank_of(message->from), part);
          continue;
        }
        partner = rank_of(message->to);
        in_host_memory.push_back(on_host(message->sent.contiguous()));
        const std::vector<at::Tensor> parts = parts_of(in_host_memory.back());
        const std::lock_guard posting(posting_);  // several transfers post from their own threads
        for (std::size_t part = 0; part < parts.size(); ++part) {
          std::vector<at::Tensor> buffer = {parts[part]};
          pending.emplace_back(partner, groups_[part]->send(buffer, partner, tag(*message, channel)));
        }
      }
      for (const auto& [other, work] : pending) {
        partner = other;
        work->wait();
      }
    } catch (const std::exception& error) {
      lost(partner, error);
    }
  }

 private:
  struct Receive : PostedReceive {
    std::vector<c10::intrusive_ptr<c10d::Work>> parts;
  };

  /// The parts of a message, as views; the same at its sender and its receiver.
  [[nodiscard]] std::vector<at::Tensor> parts_of(const at::Tensor& bytes) const {
    const std::int64_t count =
        costmodel::parts_of_message(bytes.numel(), static_cast<std::int64_t>(groups_.size()));
    std::vector<at::Tensor> parts;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t begin = bytes.numel() * i / count, end = bytes.numel() * (i + 1) / count;
      parts.push_back(bytes.narrow(0, begin, end - begin));
    }
    return parts;
  }

  std::shared_ptr<Receive> receive(Message& message, int channel) {
    auto posted = std::make_shared<Receive>();
    message.received = host_buffer(message.bytes(), message.used_on);
    const std::vector<at::Tensor> parts = parts_of(message.received);
    const std::lock_guard posting(posting_);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      std::vector<at::Tensor> buffer = {parts[part]};
      posted->parts.push_back(groups_[part]->recv(buffer, rank_of(message.from), tag(message, channel)));
    }
    return posted;
  }

  [[noreturn]] void lost(int partner, const std::exception& error) const {
    throw SiteLost(names_[static_cast<std::size_t>(partner)] + " (rank " + std::to_string(partner) +
                   ") is lost: " + plain_reason(error));
  }

  [[nodiscard]] int tag(const Message& message, int channel) const {
    return (channel * 2 + place_[static_cast<std::size_t>(message.from)]) * 2 +
           place_[static_cast<std::size_t>(message.to)];
  }
  [[nodiscard]] int rank_of(costmodel::NodeId node) const {
    return rank_of_site_[static_cast<std::size_t>(nodes()[static_cast<std::size_t>(node)].site)];
  }
  std::vector<std::string> names_;
  std::vector<int> rank_of_site_;
  std::vector<int> place_;  // index of each node within its site; part of the message's tag, with the channel
  std::mutex posting_;
  std::vector<c10::intrusive_ptr<c10d::Backend>> groups_;
};

}  // namespace

std::vector<costmodel::NodeId> nodes_of_site(const std::vector<costmodel::Node>& nodes, int site,
                                             bool with_store) {
  std::vector<costmodel::NodeId> ids;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].site == site || (with_store && nodes[n].kind == costmodel::NodeKind::store))
      ids.push_back(static_cast<costmodel::NodeId>(n));
  }
  return ids;
}

c10::intrusive_ptr<c10d::Backend> gloo_backend(const RankTransportOptions& options,
                                               const std::string& own_address) {
  auto how = c10d::ProcessGroupGloo::Options::create(
      std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * options.timeout_s)));
  how->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own_address));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(options.store, options.rank,
                                                     static_cast<int>(options.names.size()), how);
}

std::unique_ptr<Transport> gloo_transport(const RankTransportOptions& options,
                                          const std::string& own_address) {
  std::vector<c10::intrusive_ptr<c10d::Backend>> groups;
  for (int stream = 0; stream < options.streams; ++stream) {
    RankTransportOptions one = options;
    if (stream > 0)
      one.store = c10::make_intrusive<c10d::PrefixStore>("stream " + std::to_string(stream), options.store);
    groups.push_back(gloo_backend(one, own_address));
  }
  return std::make_unique<GlooTransport>(options, std::move(groups));
}

}  // namespace fomoe::trainer
