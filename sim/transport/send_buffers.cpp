#include "sim/transport/send_buffers.hpp"

#include <algorithm>
#include <utility>

namespace fomoe::sim {

namespace {

constexpr double kTolerance_bytes = 0.5;  // smaller differences are rounding errors
constexpr double kShortestPause_s = 1e-6, kLongestPause_s = 1;

}  // namespace

double SendBuffers::delivered_bytes(Pair pair) const {
  const auto found = connections_.find(pair);
  return found == connections_.end() || found->second.messages.empty() ? 0
                                                                       : environment_.delivered_bytes(pair);
}

double SendBuffers::arrived_bytes(Pair pair) const {
  return connections_.at(pair).arrived_bytes + delivered_bytes(pair);
}

bool SendBuffers::holds(Pair pair, std::int64_t bytes) {
  Connection& connection = connections_[pair];
  connection.wished_bytes += static_cast<double>(bytes);
  return connection.wished_bytes - arrived_bytes(pair) < environment_.size_bytes(pair) + kTolerance_bytes;
}

bool SendBuffers::busy(Pair pair) const {
  const auto found = connections_.find(pair);
  return found != connections_.end() && !found->second.messages.empty();
}

void SendBuffers::send(Pair pair, std::int64_t bytes, std::shared_ptr<Departure> departure, Callback arrived,
                       Callback taken) {
  Connection& connection = connections_[pair];
  connection.sent_bytes += static_cast<double>(bytes);
  const double end_bytes = connection.sent_bytes;
  const bool waits = static_cast<bool>(taken);
  connection.messages.push_back(
      {bytes, end_bytes, std::move(departure), std::move(arrived), std::move(taken)});
  if (connection.messages.size() == 1) send_first(pair);
  if (waits) wait(pair, end_bytes, {environment_.now(), arrived_bytes(pair)});
}

// Waits until the excess bytes (those that do not fit into the buffer) can have arrived at the greatest rate,
// or half the time that they need at the last observed rate, whichever is longer; then checks again. So no
// sender continues too early, and none continues late unless the rate more than doubles meanwhile.
void SendBuffers::wait(Pair pair, double end_bytes, Observation last) {
  const Observation observation{environment_.now(), arrived_bytes(pair)};
  const double excess_bytes = end_bytes - observation.arrived_bytes - environment_.size_bytes(pair);
  double pause_s = excess_bytes / std::max(environment_.fastest_bytes_per_s(pair), kTolerance_bytes);
  if (observation.arrived_bytes > last.arrived_bytes + kTolerance_bytes)
    pause_s = std::max(pause_s, excess_bytes * (observation.at_s - last.at_s) /
                                    (observation.arrived_bytes - last.arrived_bytes) / 2);
  environment_.after(
      std::clamp(pause_s, kShortestPause_s, kLongestPause_s), [this, pair, end_bytes, observation] {
        auto& messages = connections_.at(pair).messages;
        const auto waits = std::find_if(messages.begin(), messages.end(), [&](const Message& message) {
          return message.end_bytes == end_bytes;
        });
        if (waits == messages.end()) return;  // the message has arrived
        if (end_bytes - arrived_bytes(pair) > environment_.size_bytes(pair) + kTolerance_bytes)
          return wait(pair, end_bytes, observation);
        const Callback taken = std::exchange(waits->taken, {});
        taken();
      });
}

void SendBuffers::send_first(Pair pair) {
  Message& first = connections_.at(pair).messages.front();
  environment_.begin_flow(pair, first.bytes, std::move(first.departure), [this, pair] {
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
