// Tests one connection without a network: its send buffer, its window, and what it tells of messages.
#include "sim/tcp/connection.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace fomoe::sim;

namespace {

struct Heard : PartEvents {
  double written_s = -1, delivered_s = -1;
  void written(double at_s) override { written_s = at_s; }
  void delivered(double at_s) override { delivered_s = at_s; }
};

Connection reno(SocketBuffers buffers = {}) { return {make_reno(10 * kSegment_bytes, false), buffers, 0.1}; }

/// A window of ten segments that notes the time-outs of which it hears.
struct Noted : CongestionWindow {
  explicit Noted(std::vector<double>& timeouts_s)
      : CongestionWindow(10 * kSegment_bytes, kSegment_bytes), timeouts(timeouts_s) {}
  void acknowledged(const Ack& /*ack*/) override {}
  void lost(const Ack& /*ack*/) override {}
  void recovered() override {}
  void sends_again(double /*now_s*/, double /*idle_s*/, double timeout_s, bool /*limited*/) override {
    timeouts.push_back(timeout_s);
  }
  [[nodiscard]] double pace_bytes_per_s(double /*smoothed_s*/) const override { return 1e9; }
  std::vector<double>& timeouts;
};

/// Sends all that may leave now.
std::vector<Burst> send_all(Connection& connection, double now_s) {
  std::vector<Burst> sent;
  double not_before_s = -1;
  while (const std::int64_t bytes = connection.ready_bytes(now_s, not_before_s))
    sent.push_back(connection.send(now_s, bytes));
  return sent;
}

std::int64_t sum(const std::vector<Burst>& bursts) {
  std::int64_t bytes = 0;
  for (const Burst& burst : bursts) bytes += burst.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("a small message is in the send buffer at once, and the first window leaves") {
  Connection connection = reno();
  Heard message;
  connection.put(1, 20000, message);
  CHECK(message.written_s == 1);
  CHECK(message.delivered_s == -1);
  const std::vector<Burst> sent = send_all(connection, 1);
  CHECK(sum(sent) == 14480);  // ten segments
  connection.deliver(1.05, 14480);
  for (const Burst& burst : sent) connection.acknowledge(1.1, burst);
  CHECK(sum(send_all(connection, 1.1)) == 20000 - 14480);
  connection.deliver(1.15, 20000 - 14480);
  CHECK(message.delivered_s == 1.15);
  CHECK(connection.idle());
}

TEST_CASE("a large message is written as the buffer empties: below two thirds of it") {
  Connection connection = reno();
  Heard message, behind;
  connection.put(0, 300000, message);
  connection.put(0, 1000, behind);
  CHECK(message.written_s == -1);
  double now_s = 0;
  while (message.written_s < 0 && now_s < 10) {
    const std::vector<Burst> sent = send_all(connection, now_s);
    now_s += 0.1;
    connection.deliver(now_s - 0.05, sum(sent));
    for (const Burst& burst : sent) connection.acknowledge(now_s, burst);
  }
  // The first windows carry 10, 20, 40 and 80 segments. The buffer is twice the window, in memory.
  CHECK(message.written_s > 0.1);
  CHECK(message.written_s < 0.5);
  CHECK(message.delivered_s == -1);  // the sender goes on before the receiver has it
  CHECK(behind.written_s == message.written_s);
}

TEST_CASE("a receive buffer has room for a window of half of it") {
  Connection connection = reno({1e18, 10000});
  Heard message;
  connection.put(0, 100000, message);
  const std::int64_t sent = sum(send_all(connection, 0));
  CHECK(sent <= 5000);
  CHECK(sent > 5000 - 1448);
}

TEST_CASE("a receive buffer without room for a whole segment gets shorter ones") {
  Connection connection = reno({1e18, 2000});
  Heard message;
  connection.put(0, 2500, message);
  double now_s = 0;
  for (const std::int64_t expected : {1000, 1000, 500}) {  // half of the buffer in each round trip
    const std::vector<Burst> sent = send_all(connection, now_s);
    CHECK(sum(sent) == expected);
    now_s += 0.1;
    connection.deliver(now_s - 0.05, sum(sent));
    for (const Burst& burst : sent) connection.acknowledge(now_s, burst);
  }
  CHECK(message.delivered_s == doctest::Approx(0.25));
  CHECK(connection.idle());
}

TEST_CASE("lost bytes are sent again, and the window shrinks once for one window of losses") {
  Connection connection = reno();
  Heard message;
  connection.put(0, 14480, message);
  std::vector<Burst> sent = send_all(connection, 0);
  REQUIRE(sent.size() == 5);
  for (Burst& burst : sent) {
    burst.lost = 1448;
    burst.bytes -= 1448;
    connection.deliver(0.05, burst.bytes);
    connection.acknowledge(0.1, burst);
  }
  CHECK(message.delivered_s == -1);
  const std::int64_t again = sum(send_all(connection, 0.1));
  CHECK(again == 5 * 1448);  // half of ten segments: five
  connection.deliver(0.15, again);
  CHECK(message.delivered_s == 0.15);
}

TEST_CASE("time-outs are three round trips long at first, and fall as those of Linux do") {
  // tcp_info.tcpi_rto of Linux 6.18 over a path of 404 ms, once in each round trip.
  const std::vector<double> of_linux_s = {1.216, 1.136, 1.0, 0.9, 0.828, 0.772, 0.732, 0.7, 0.684};
  std::vector<double> timeouts_s;
  Connection connection(std::make_unique<Noted>(timeouts_s), {}, 0.404);
  Heard message;
  double now_s = 0;
  for (std::size_t i = 0; i <= of_linux_s.size(); ++i) {
    connection.put(now_s, 1448, message);
    const std::vector<Burst> sent = send_all(connection, now_s);
    REQUIRE(sent.size() == 1);
    now_s += 0.404;
    connection.deliver(now_s - 0.202, 1448);
    connection.acknowledge(now_s, sent.front());
    now_s += 0.01;
  }
  REQUIRE(timeouts_s.size() == of_linux_s.size());
  for (std::size_t i = 0; i < of_linux_s.size(); ++i) {
    CAPTURE(i);
    CHECK(timeouts_s[i] == doctest::Approx(of_linux_s[i]).epsilon(0.05));
  }
}
