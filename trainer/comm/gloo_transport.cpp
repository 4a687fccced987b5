#include <chrono>
#include <mutex>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "trainer/comm/rank_transports.hpp"

namespace fomoe::trainer {
namespace {

/// Point-to-point messages over Gloo; one rank hosts the nodes of one site.
class GlooTransport : public Transport {
 public:
  GlooTransport(const RankTransportOptions& options, c10::intrusive_ptr<c10d::Backend> group)
      : Transport(options.nodes, nodes_of_site(options.nodes, options.site)),
        names_(options.names),
        rank_of_site_(options.rank_of_site),
        group_(std::move(group)) {
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
      std::vector<c10::intrusive_ptr<c10d::Work>> pending;
      for (const Message* message : messages) {
        if (!hosts(message->from)) {
          pending.push_back(static_cast<const Receive&>(*message->posted).work);
          continue;
        }
        partner = rank_of(message->to);
        std::vector<at::Tensor> buffer = {message->sent.contiguous()};
        const std::lock_guard posting(posting_);  // several transfers post from their own threads
        pending.push_back(group_->send(buffer, partner, tag(*message, channel)));
      }
      for (std::size_t m = 0; m < messages.size(); ++m) {
        partner = rank_of(hosts(messages[m]->from) ? messages[m]->to : messages[m]->from);
        pending[m]->wait();
      }
    } catch (const std::exception& error) {
      lost(partner, error);
    }
  }

 private:
  struct Receive : PostedReceive {
    c10::intrusive_ptr<c10d::Work> work;
  };

  std::shared_ptr<Receive> receive(Message& message, int channel) {
    auto posted = std::make_shared<Receive>();
    message.received = at::empty({message.bytes()}, at::kByte);
    std::vector<at::Tensor> buffer = {message.received};
    const std::lock_guard posting(posting_);
    posted->work = group_->recv(buffer, rank_of(message.from), tag(message, channel));
    return posted;
  }

  [[noreturn]] void lost(int partner, const std::exception& error) const {
    const std::string reason = error.what();
    throw SiteLost(names_[static_cast<std::size_t>(partner)] + " (rank " + std::to_string(partner) +
                   ") is lost: " + reason.substr(0, reason.find('\n')));
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
  c10::intrusive_ptr<c10d::Backend> group_;
};

}  // namespace

std::vector<costmodel::NodeId> nodes_of_site(const std::vector<costmodel::Node>& nodes, int site) {
  std::vector<costmodel::NodeId> ids;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].site == site) ids.push_back(static_cast<costmodel::NodeId>(n));
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
  return std::make_unique<GlooTransport>(options, gloo_backend(options, own_address));
}

}  // namespace fomoe::trainer
