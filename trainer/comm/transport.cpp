#include "trainer/comm/transport.hpp"

#include <numeric>
#include <set>
#include <stdexcept>

namespace fomoe::trainer {

using costmodel::Node;
using costmodel::NodeId;

namespace {

std::int64_t sum(const BytesByClass& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

void add(BytesByClass& total, const BytesByClass& more) {
  for (std::size_t i = 0; i < total.size(); ++i) total[i] += more[i];
}

std::vector<NodeId> all_of(const std::vector<Node>& nodes) {
  std::vector<NodeId> ids(nodes.size());
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

}  // namespace

std::int64_t Message::bytes() const { return sum(bytes_of); }
std::int64_t Traffic::total_sent() const { return sum(sent); }
std::int64_t Traffic::total_received() const { return sum(received); }

Transport::Transport(std::vector<Node> nodes, const std::vector<NodeId>& hosted)
    : nodes_(std::move(nodes)), hosted_(nodes_.size(), false), traffic_(nodes_.size()) {
  for (const NodeId node : hosted) hosted_.at(static_cast<std::size_t>(node)) = true;
  for (Traffic& traffic : traffic_) traffic.sent_to.resize(nodes_.size(), 0);
}

void Transport::expect(std::vector<Message>& messages, int channel) {
  std::vector<Message*> arriving;
  for (Message& message : messages) {
    if (hosts(message.to) && !hosts(message.from) && !stored(message)) arriving.push_back(&message);
  }
  if (!arriving.empty()) post(arriving, channel);
}

void Transport::exchange(std::vector<Message>& messages, int channel) {
  std::vector<Message*> remote, through_store;
  std::unique_lock counting(counting_);
  for (Message& message : messages) {
    const auto from = static_cast<std::size_t>(message.from), to = static_cast<std::size_t>(message.to);
    if (hosted_[from] && message.sent.numel() != message.bytes())
      throw std::logic_error("the length of a message differs from its declared number of bytes");
    if (message.counted && nodes_[from].site != nodes_[to].site) count(message);
    if (hosted_[from] && hosted_[to]) {
      message.received = message.sent;
    } else {
      (stored(message) ? through_store : remote).push_back(&message);
    }
  }
  counting.unlock();
  if (!remote.empty()) move(remote, channel);
  if (!through_store.empty()) move_through_store(through_store, channel);
}

void Transport::count(const Message& message) {
  const auto from = static_cast<std::size_t>(message.from), to = static_cast<std::size_t>(message.to);
  const bool from_store = is_store(message.from);
  if (hosted_[from] && !from_store) add(traffic_[from].sent, message.bytes_of);
  if (hosted_[from_store ? to : from]) traffic_[from].sent_to[to] += message.bytes();
  if (hosted_[to]) add(traffic_[to].received, message.bytes_of);
}

void Transport::move_through_store(const std::vector<Message*>& messages, int channel) {
  const auto name = [&](const StoredObject& object) {
    return std::to_string(channel) + '-' + std::to_string(object.number) + '.' +
           std::to_string(object.origin);
  };
  // An object is put once, by the process of its origin, however many nodes it is sent to. The aggregator
  // beside the store has got those of its own site in memory.
  std::set<StoredObject> there;
  for (const Message* message : messages) {
    const StoredObject& object = *message->object;
    if (hosts(message->from) && hosts(object.origin) && there.insert(object).second)
      store_->put(name(object), message->sent);
  }
  for (Message* message : messages) {
    if (hosts(message->to))
      message->received = store_->get(name(*message->object), message->bytes(), message->object->origin);
  }
}

InProcessTransport::InProcessTransport(const std::vector<Node>& nodes) : Transport(nodes, all_of(nodes)) {}

void InProcessTransport::move(const std::vector<Message*>&, int) {
  throw std::logic_error("a single process hosts all nodes, so it has no remote messages");
}

}  // namespace fomoe::trainer
