// Tests of the address at which a process listens.
#include "trainer/rendezvous/own_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "platforms/support/input_error.hpp"
#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;

namespace {

/// The addresses of this machine: 127.0.0.1, perhaps ::1, and those of its network.
std::vector<std::string> addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  REQUIRE(::getifaddrs(&list) == 0);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    char text[INET6_ADDRSTRLEN] = "";
    if (one->ifa_addr == nullptr) continue;
    if (one->ifa_addr->sa_family == AF_INET)
      ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
    else if (one->ifa_addr->sa_family == AF_INET6 && std::string(one->ifa_name) == "lo")
      ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr, text,
                  sizeof text);
    if (*text != '\0') found.emplace_back(text);
  }
  ::freeifaddrs(list);
  return found;
}

}  // namespace

TEST_CASE(
    "packets to an address of this machine leave from that address; an unknown name means the loopback") {
  Launch launch;
  launch.port = 29500;
  for (const std::string& address : addresses()) {
    CAPTURE(address);
    launch.address = address;
    CHECK(own_address(launch) == address);
  }
  launch.address = "no such host";
  CHECK(own_address(launch) == "127.0.0.1");
}

TEST_CASE("the address of a named interface; one that there is not is refused with those that there are") {
  Launch launch;
  launch.address = "127.0.0.1";
  launch.port = 29500;
  launch.interface = "lo";
  CHECK(own_address(launch) == "127.0.0.1");
  launch.interface = "no-such-0";
  try {
    (void)own_address(launch);
    FAIL("accepted");
  } catch (const fomoe::UsageError& error) {
    CHECK_MESSAGE(std::string(error.what()).find("lo") != std::string::npos, error.what());
    CHECK_MESSAGE(std::string(error.what()).find("no-such-0") != std::string::npos, error.what());
  }
}
