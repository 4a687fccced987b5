// Tests what the kernel says of a connection over loopback.
#include "trainer/sockets/seen_connections.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/trainer/sockets/loopback.hpp"

TEST_CASE("the kernel's facts of both ends of a connection, with the bytes that it carried") {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  const int listener = fomoe::tests::listen_on_loopback(address);
  const int near = ::socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(::setsockopt(near, IPPROTO_TCP, TCP_CONGESTION, "reno", 4) == 0);
  REQUIRE(::connect(near, reinterpret_cast<sockaddr*>(&address), length) == 0);
  const int far = ::accept(listener, nullptr, nullptr);
  REQUIRE(far >= 0);
  // More than a tenth of what any other connection of this process may have carried.
  std::vector<char> block(1 << 20);
  double bytes = 0;
  for (int i = 0; i < 64; ++i) {
    const auto sent = ::send(near, block.data(), block.size(), MSG_DONTWAIT);
    if (sent > 0) bytes += static_cast<double>(sent);
    while (::recv(far, block.data(), block.size(), MSG_DONTWAIT) > 0) {
    }
  }
  REQUIRE(bytes > 1e7);
  ::usleep(50'000);  // until the last bytes are acknowledged
  const fomoe::scenario::SeenConnections seen = fomoe::trainer::seen_connections();
  ::close(near);
  ::close(far);
  ::close(listener);
  REQUIRE(seen.list.size() >= 2);
  CHECK(seen.send_buffer_bytes > 1e5);
  CHECK(seen.receive_buffer_bytes > 1e5);
  int found = 0;
  for (const auto& one : seen.list) {
    if (one.congestion_control != "reno") continue;
    ++found;
    CHECK(one.sent_bytes + one.received_bytes > 0.5 * bytes);
    CHECK(one.segment_bytes > 500);
    CHECK(one.least_round_trip_s < 0.1);
  }
  CHECK(found >= 1);
}
