#include "sim/send_buffers.hpp"

#include <algorithm>

namespace fomoe::sim {

namespace {

constexpr double kWhole_bytes = 0.5;  // less is rounding
constexpr double kShortestPause_s = 1e-9, kLongestPause_s = 1;

}  // namespace

double SendBuffers::landed_bytes(Pair pair) const {
  const auto found = connections_.find(pair);
  return found == connections_.end() || found->second.messages.empty() ? 0 : around_.landed_bytes(pair);
}

double SendBuffers::arrived_bytes(Pair pair) const {
  return connections_.at(pair).arrived_bytes + landed_bytes(pair);
}

double SendBuffers::too_many_bytes(Pair pair, double end_bytes) const {
  return end_bytes - arrived_bytes(pair) - around_.size_bytes(pair);
}

bool SendBuffers::hand_over(Pair pair, std::int64_t bytes, Callback taken) {
  Connection& connection = connections_[pair];
  connection.handed_over_bytes += static_cast<double>(bytes);
  const double end_bytes = connection.handed_over_bytes;
  if (too_many_bytes(pair, end_bytes) < kWhole_bytes) return true;
  look_later(pair, {end_bytes, -1, 0, std::move(taken)});
  return false;
}

// No sooner than the rest can have arrived: so nobody goes on too early, and where nothing else limits the flow,
// nobody late. Again and again where something does; ever more seldom while nothing moves.
void SendBuffers::look_later(Pair pair, Wait wait) {
  Connection& connection = connections_.at(pair);
  if (connection.messages.empty()) {
    connection.for_first_byte.push_back(std::move(wait));
    return;
  }
  const double seen_bytes = arrived_bytes(pair);
  const double needed_s = too_many_bytes(pair, wait.end_bytes) / around_.fastest_bytes_per_s(pair);
  const bool moves = seen_bytes > wait.seen_bytes;
  const double pause_s =
      std::max({needed_s, kShortestPause_s, moves ? 0 : std::min(2 * wait.pause_s, kLongestPause_s)});
  around_.after(pause_s, [this, pair, wait = Wait{wait.end_bytes, seen_bytes, pause_s, std::move(wait.taken)}] {
    if (too_many_bytes(pair, wait.end_bytes) < kWhole_bytes) return wait.taken();
    look_later(pair, wait);
  });
}

void SendBuffers::send(Pair pair, std::int64_t bytes, Callback arrived) {
  Connection& connection = connections_[pair];
  connection.messages.push_back({bytes, std::move(arrived)});
  if (connection.messages.size() > 1) return;
  send_first(pair);
  for (Wait& wait : std::exchange(connection.for_first_byte, {})) look_later(pair, std::move(wait));
}

void SendBuffers::send_first(Pair pair) {
  around_.fly(pair, connections_.at(pair).messages.front().bytes, [this, pair] {
    Connection& connection = connections_.at(pair);
    const Message there = std::move(connection.messages.front());
    connection.messages.pop_front();
    connection.arrived_bytes += static_cast<double>(there.bytes);
    if (!connection.messages.empty()) send_first(pair);
    there.arrived();
  });
}

}  // namespace fomoe::sim
