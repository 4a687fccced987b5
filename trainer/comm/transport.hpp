// How bytes get from node to node, and how many did. Collectives are built on this one call, so that counting
// here counts everything.
//
// A process hosts some nodes of the plan: one site's, or all of them where it trains the sites in turn. What
// its nodes send each other is handed over in memory; a derived transport moves the rest.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

inline constexpr std::size_t kTrafficClasses = 7;  // of costmodel::TrafficClass
using BytesByClass = std::array<std::int64_t, kTrafficClasses>;

/// More than transfers that are under way at once.
inline constexpr int kChannels = 1 << 16;

/// A receive that waits for its sender. The transport that began it knows what it is.
struct PostedReceive {
  virtual ~PostedReceive() = default;
};

/// All that one node sends another in one phase.
struct Message {
  costmodel::NodeId from = 0, to = 0;
  BytesByClass bytes_of{};                // what the bytes are, for counting; their sum is the length
  at::Tensor sent;                        // uint8 on the CPU, where `from` is hosted here
  at::Tensor received;                    // the same, filled by exchange() where `to` is hosted here
  std::shared_ptr<PostedReceive> posted;  // by expect()

  [[nodiscard]] std::int64_t bytes() const;
};

/// Bytes that crossed between sites since the start, by class and by the other node.
struct Traffic {
  BytesByClass sent{}, received{};
  std::vector<std::int64_t> sent_to;  // by node

  [[nodiscard]] std::int64_t total_sent() const;
  [[nodiscard]] std::int64_t total_received() const;
};

class Transport {
 public:
  /// `hosted`: the nodes of `nodes` that this process trains.
  Transport(std::vector<costmodel::Node> nodes, const std::vector<costmodel::NodeId>& hosted);
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] bool hosts(costmodel::NodeId node) const { return hosted_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] const std::vector<costmodel::Node>& nodes() const { return nodes_; }

  /// Moves all messages at once and returns when all that this process sends or receives has. At most one
  /// message for each (from, to); every process passes those that concern it. Throws std::runtime_error,
  /// naming the site, where a partner is gone.
  /// May be called from several threads at once, each with a channel of its own, in [0, kChannels): messages
  /// find each other by channel, sender and receiver, and those of one channel arrive in order.
  void exchange(std::vector<Message>& messages, int channel = 0);

  /// Makes room for those of `messages` that will arrive here from other processes, before anybody has sent
  /// them. Some transports send data only to a receiver that is known to be ready, and word of that takes the
  /// latency of the way: said beforehand, it costs nothing. The same messages then go through exchange(), on
  /// the same channel and in the order in which they were expected. Throws as exchange() does.
  void expect(std::vector<Message>& messages, int channel = 0);

  /// Whether several transfers may be under way at once. Where not, they must be moved one after another, in
  /// the same order at every process.
  [[nodiscard]] virtual bool concurrent() const { return true; }

  /// Of a hosted node, while nothing is under way. Messages between nodes of one site do not cross and are
  /// not counted.
  [[nodiscard]] const Traffic& traffic(costmodel::NodeId node) const {
    return traffic_[static_cast<std::size_t>(node)];
  }

 protected:
  /// Messages that will arrive from other processes. Called from several threads.
  virtual void post(const std::vector<Message*>& /*messages*/, int /*channel*/) {}
  /// Messages of which exactly one end is hosted here. Called from several threads.
  virtual void move(const std::vector<Message*>& messages, int channel) = 0;

 private:
  std::vector<costmodel::Node> nodes_;
  std::vector<bool> hosted_;
  std::vector<Traffic> traffic_;
  std::mutex counting_;
};

/// One process that hosts every node.
class InProcessTransport : public Transport {
 public:
  explicit InProcessTransport(const std::vector<costmodel::Node>& nodes);

 protected:
  void move(const std::vector<Message*>& messages, int channel) override;
};

}  // namespace fomoe::trainer
