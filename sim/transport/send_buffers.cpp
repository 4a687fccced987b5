#include "sim/transport/send_buffers.hpp"

#include <algorithm>
#include <utility>

namespace fomoe::sim {

namespace {

constexpr double kWhole_bytes = 0.5;  // smaller differences are rounding errors
constexpr double kShortestPause_s = 1e-6, kLongestPause_s = 1;

}  // namespace

double SendBuffers::delivered_bytes(Pair pair) const {
  const auto found = connections_.find(pair);
  return found == connections_.end() || found->second.messages.empty() ? 0 : around_.delivered_bytes(pair);
}

double SendBuffers::arrived_bytes(Pair pair) const {
  return connections_.at(pair).arrived_bytes + delivered_bytes(pair);
}

bool SendBuffers::holds(Pair pair, std::int64_t bytes) {
  Connection& connection = connections_[pair];
  connection.wished_bytes += static_cast<double>(bytes);
  return connection.wished_bytes - arrived_bytes(pair) < around_.size_bytes(pair) + kWhole_bytes;
}

void SendBuffers::send(Pair pair, std::int64_t bytes, Callback arrived, Callback taken) {
  Connection& connection = connections_[pair];
  connection.sent_bytes += static_cast<double>(bytes);
  const double end_bytes = connection.sent_bytes;
  const bool waits = static_cast<bool>(taken);
  connection.messages.push_back({bytes, end_bytes, std::move(arrived), std::move(taken)});
  if (connection.messages.size() == 1) send_first(pair);
  if (waits) wait(pair, end_bytes, {around_.now(), arrived_bytes(pair)});
}

// Waits until the excess bytes (those that do not fit into the buffer) can have arrived at the greatest rate,
// or half the time that they need at the last observed rate, whichever is longer; then checks again. So no
// sender continues too early, and none continues late unless the rate more than doubles meanwhile.
void SendBuffers::wait(Pair pair, double end_bytes, Look last) {
  const Look look{around_.now(), arrived_bytes(pair)};
  const double too_many_bytes = end_bytes - look.arrived_bytes - around_.size_bytes(pair);
  double pause_s = too_many_bytes / std::max(around_.fastest_bytes_per_s(pair), kWhole_bytes);
  if (look.arrived_bytes > last.arrived_bytes + kWhole_bytes)
    pause_s = std::max(
        pause_s, too_many_bytes * (look.at_s - last.at_s) / (look.arrived_bytes - last.arrived_bytes) / 2);
  around_.after(std::clamp(pause_s, kShortestPause_s, kLongestPause_s), [this, pair, end_bytes, look] {
    auto& messages = connections_.at(pair).messages;
    const auto waits = std::find_if(messages.begin(), messages.end(),
                                    [&](const Message& message) { return message.end_bytes == end_bytes; });
    if (waits == messages.end()) return;  // the message has arrived
    if (end_bytes - arrived_bytes(pair) > around_.size_bytes(pair) + kWhole_bytes)
      return wait(pair, end_bytes, look);
    const Callback taken = std::exchange(waits->taken, {});
    taken();
  });
}

void SendBuffers::send_first(Pair pair) {
  around_.fly(pair, connections_.at(pair).messages.front().bytes, [this, pair] {
    Connection& connection = connections_.at(pair);
    const Message there = std::move(connection.messages.front());
    connection.messages.pop_front();
    connection.arrived_bytes += static_cast<double>(there.bytes);
    if (!connection.messages.empty()) send_first(pair);
    if (there.taken) there.taken();
    there.arrived();
  });
}

}  // namespace fomoe::sim
