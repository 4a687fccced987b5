// Tests keepalive on connections that somebody else has opened.
#include "trainer/sockets/keepalive.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/trainer/sockets/loopback.hpp"

namespace {

int option(int file, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  REQUIRE(::getsockopt(file, level, name, &value, &length) == 0);
  return value;
}

}  // namespace

TEST_CASE("keepalive is set on both ends of a connection, once, and on nothing else") {
  (void)fomoe::trainer::keep_connections_alive();  // of whatever this process has open
  sockaddr_in address{};
  socklen_t length = sizeof address;
  const int listener = fomoe::tests::listen_on_loopback(address);
  const int near = ::socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(::connect(near, reinterpret_cast<sockaddr*>(&address), length) == 0);
  const int far = ::accept(listener, nullptr, nullptr);
  REQUIRE(far >= 0);
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);

  CHECK(fomoe::trainer::keep_connections_alive({40, 7, 3}) == 2);
  for (const int end : {near, far}) {
    CHECK(option(end, SOL_SOCKET, SO_KEEPALIVE) == 1);
    CHECK(option(end, IPPROTO_TCP, TCP_KEEPIDLE) == 40);
    CHECK(option(end, IPPROTO_TCP, TCP_KEEPINTVL) == 7);
    CHECK(option(end, IPPROTO_TCP, TCP_KEEPCNT) == 3);
  }
  CHECK(option(listener, SOL_SOCKET, SO_KEEPALIVE) == 0);
  CHECK(option(pair[0], SOL_SOCKET, SO_KEEPALIVE) == 0);
  CHECK(fomoe::trainer::keep_connections_alive() == 0);
  CHECK(option(near, IPPROTO_TCP, TCP_KEEPIDLE) == 40);
  for (const int file : {listener, near, far, pair[0], pair[1]}) ::close(file);
}
