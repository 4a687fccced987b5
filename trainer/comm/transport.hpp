// Moves bytes between nodes, and counts the bytes that have moved. All collectives are built on
// Transport::exchange, so the counts there include all traffic.
//
// A process hosts some nodes of the plan: those of one site, or all nodes if it trains the sites in turn.
// Messages between nodes of the same process are handed over in memory; a derived transport moves the others.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

inline constexpr std::size_t kTrafficClasses = 7;  // values of costmodel::TrafficClass
using BytesByClass = std::array<std::int64_t, kTrafficClasses>;

/// The number of channels (see Transport::exchange), and so an upper bound of the transfers under way at
/// once.
inline constexpr int kChannels = 1 << 16;

/// A receive that has been posted. The derived type belongs to the transport that posted it.
struct PostedReceive {
  virtual ~PostedReceive() = default;
};

/// A site has stopped answering, or has never joined.
class SiteLost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a store keeps: the payloads that the same nodes exchange in one transfer, and one of these nodes, or
/// the store itself, has made.
struct StoredObject {
  int number = 0;  // of the transfer's first exchange among these nodes
  costmodel::NodeId origin = 0;
  friend auto operator<=>(const StoredObject&, const StoredObject&) = default;
};

/// Where the nodes that exchange through a store (costmodel::NodeKind::store) put what they send. Several
/// threads may use it.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  /// Keeps `bytes`, a uint8 tensor on any device, for those who ask for `name`.
  virtual void put(const std::string& name, const at::Tensor& bytes) = 0;
  /// Waits until `origin` has put the object, and returns its `bytes` bytes in host memory. Throws SiteLost,
  /// naming the site, if that takes too long.
  [[nodiscard]] virtual at::Tensor get(const std::string& name, std::int64_t bytes,
                                       costmodel::NodeId origin) = 0;
  /// Called before each round. All nodes have read what was put before the round `index` − 1.
  virtual void begin_round(std::int64_t /*index*/) {}
};

/// Everything that one node sends to another in one phase, or one object of it if a store is an end.
struct Message {
  costmodel::NodeId from = 0, to = 0;
  std::optional<StoredObject> object = {};  // set if a store is an end
  BytesByClass bytes_of{};                  // bytes by traffic class, for counting; their sum is the length
  bool counted = true;                      // whether traffic() counts the bytes
  /// The device on which the receiver will use the bytes. If it is a GPU, they may arrive there or in host
  /// memory; if it is the CPU, they arrive in host memory unless sender and receiver are in one process.
  at::Device used_on = at::kCPU;
  at::Tensor sent;                        // uint8 on any device; set where `from` is hosted here
  at::Tensor received;                    // uint8; filled by exchange() where `to` is hosted here
  std::shared_ptr<PostedReceive> posted;  // set by expect()

  [[nodiscard]] std::int64_t bytes() const;
};

/// Bytes that crossed between sites since the start, by traffic class and by receiving node.
struct Traffic {
  BytesByClass sent{}, received{};
  std::vector<std::int64_t> sent_to;  // bytes, by receiving node

  [[nodiscard]] std::int64_t total_sent() const;
  [[nodiscard]] std::int64_t total_received() const;
};

class Transport {
 public:
  /// `hosted` lists the elements of `nodes` that this process trains.
  Transport(std::vector<costmodel::Node> nodes, const std::vector<costmodel::NodeId>& hosted);
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] bool hosts(costmodel::NodeId node) const { return hosted_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] const std::vector<costmodel::Node>& nodes() const { return nodes_; }

  /// Moves all messages at once. Returns when everything that this process sends or receives has arrived.
  /// There is at most one message for each pair (from, to) and object. Every process passes the messages that
  /// its own nodes send or receive. Throws SiteLost, naming the site, if a partner is gone. Several threads
  /// may call exchange() at once, each with its own channel in [0, kChannels]. A message is identified by its
  /// channel, sender and receiver. Messages with the same channel, sender and receiver arrive in the order in
  /// which they were sent.
  void exchange(std::vector<Message>& messages, int channel = 0);

  /// Posts the receives for the messages that other processes will send to this one, before anybody has sent
  /// them. Some transports send data only after the receiver has announced that it is ready, and the
  /// announcement takes one network latency. An announcement in advance removes this delay. Afterwards, pass
  /// the same messages to exchange(), on the same channel and in the order in which they were expected.
  /// Throws as exchange() does.
  void expect(std::vector<Message>& messages, int channel = 0);

  /// Whether several transfers may be under way at once. If not, transfers must run one after another, in the
  /// same order at every process.
  [[nodiscard]] virtual bool concurrent() const { return true; }

  /// From now on, messages to and from a node of the kind store are objects in `store`, unless this process
  /// hosts both ends.
  virtual void use_store(std::shared_ptr<ObjectStore> store) { store_ = std::move(store); }
  virtual void begin_round(std::int64_t index) {
    if (store_) store_->begin_round(index);
  }

  /// The traffic of a hosted node; call it only while no exchange is under way. Messages between nodes of one
  /// site do not cross between sites and are not counted. What a store sends is counted by the processes that
  /// receive it, in sent_to of the store's own node.
  [[nodiscard]] const Traffic& traffic(costmodel::NodeId node) const {
    return traffic_[static_cast<std::size_t>(node)];
  }

 protected:
  /// Posts receives for messages from other processes. Several threads may call it.
  virtual void post(const std::vector<Message*>& /*messages*/, int /*channel*/) {}
  /// Moves messages that have exactly one end hosted here. Several threads may call it.
  virtual void move(const std::vector<Message*>& messages, int channel) = 0;

 private:
  [[nodiscard]] bool is_store(costmodel::NodeId node) const {
    return nodes_[static_cast<std::size_t>(node)].kind == costmodel::NodeKind::store;
  }
  [[nodiscard]] bool stored(const Message& message) const { return store_ && message.object; }
  void count(const Message& message);
  void move_through_store(const std::vector<Message*>& messages, int channel);

  std::vector<costmodel::Node> nodes_;
  std::vector<bool> hosted_;
  std::vector<Traffic> traffic_;
  std::mutex counting_;
  std::shared_ptr<ObjectStore> store_;
};

/// The transport of a process that hosts every node.
class InProcessTransport : public Transport {
 public:
  explicit InProcessTransport(const std::vector<costmodel::Node>& nodes);

 protected:
  void move(const std::vector<Message*>& messages, int channel) override;
};

}  // namespace fomoe::trainer
