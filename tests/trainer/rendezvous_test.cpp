// How sites find each other: a port that somebody else has, and sites that were started differently.
#include "trainer/rendezvous.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>

#include "tests/trainer/support.hpp"
#include "trainer/usage_error.hpp"

using namespace fomoe::trainer;

namespace {

/// A port of this machine that is listened to while it lives.
class TakenPort {
 public:
  TakenPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t length = sizeof address;
    REQUIRE(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(socket_, 1) == 0);
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    number_ = ntohs(address.sin_port);
  }
  ~TakenPort() { ::close(socket_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int socket_, number_ = 0;
};

Launch launch(int rank, int port) {
  Launch one;
  one.rank = rank;
  one.world = 2;
  one.address = "127.0.0.1";
  one.port = port;
  return one;
}

std::string said(const std::function<void()>& what) {
  try {
    what();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a port in use is said at once, not waited for") {
  const TakenPort port;
  const auto start = std::chrono::steady_clock::now();
  const std::string text = said([&] {
    Rendezvous(launch(0, port.number()), {"north", "south"}, /*timeout_s=*/60);
  });
  CHECK(text.find("MASTER_PORT: got " + std::to_string(port.number()) +
                  ", which is in use on this machine") != std::string::npos);
  CHECK(text.find("; for example MASTER_PORT=") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
}

TEST_CASE("a site with another version, or other data, is named at both with what differs") {
  for (const char* differs : {"data", "version of fomoe-train"}) {
    int port = 0;
    {
      const TakenPort free_afterwards;
      port = free_afterwards.number();
    }
    const auto of_rank = [&](int rank) {
      return said([&] {
        Rendezvous rendezvous(launch(rank, port), {"north", "south"}, /*timeout_s=*/60);
        Digest digest = {{"seed", "42"}, {"data", "d"}, {"version of fomoe-train", "v"}};
        for (auto& [name, value] : digest) {
          if (rank == 1 && name == differs) value += "2";
        }
        rendezvous.agree(digest);
      });
    };
    auto other = std::async(std::launch::async, of_rank, 1);
    const std::string value = std::string(differs) == "data" ? "d" : "v",
                      expected = std::string("south (rank 1) was started with another ") + differs + " (" +
                                 value + "2 there, " + value + " at rank 0)";
    CHECK(of_rank(0).find(expected) != std::string::npos);
    CHECK(other.get().find(expected) != std::string::npos);
  }
}
