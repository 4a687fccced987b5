// Tests how sites find each other: with a port that is in use, and with sites that were started differently.
#include "trainer/rendezvous/rendezvous.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "platforms/support/input_error.hpp"
#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;

namespace {

/// Listens on a port of this machine as long as the object exists.
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
  [[nodiscard]] int socket() const { return socket_; }

 private:
  int socket_, number_ = 0;
};

/// A port of this machine that is free at this moment.
int free_port() { return TakenPort().number(); }

/// Forwards connections to a port of this machine, one after the other, with a delay in both directions.
class SlowPath {
 public:
  SlowPath(int to_port, std::chrono::milliseconds delay) : delay_(delay) {
    accepting_ = std::async(std::launch::async, [this, to_port] {
      for (int near = 0; (near = ::accept(listener_.socket(), nullptr, nullptr)) >= 0;) {
        const int far = connected_to(to_port);
        if (far >= 0) {
          auto back = std::async(std::launch::async, [&] { hand_on(far, near); });
          hand_on(near, far);
        }
        ::close(near);
        ::close(far);
      }
    });
  }
  ~SlowPath() { ::shutdown(listener_.socket(), SHUT_RDWR); }
  SlowPath(const SlowPath&) = delete;
  SlowPath& operator=(const SlowPath&) = delete;
  [[nodiscard]] int port() const { return listener_.number(); }

 private:
  static int connected_to(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    for (int tried = 0; tried < 300; ++tried) {  // the store may not be ready yet
      const int far = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (::connect(far, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return far;
      ::close(far);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return -1;
  }

  void hand_on(int from, int to) const {
    char piece[4096];
    for (ssize_t got = 0; (got = ::recv(from, piece, sizeof piece, 0)) > 0;) {
      std::this_thread::sleep_for(delay_);
      ssize_t sent = 0;
      while (sent < got) {
        const ssize_t more = ::send(to, piece + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
        if (more <= 0) break;
        sent += more;
      }
    }
    ::shutdown(to, SHUT_RDWR);
    ::shutdown(from, SHUT_RDWR);
  }

  TakenPort listener_;
  std::chrono::milliseconds delay_;
  std::future<void> accepting_;
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
  } catch (const fomoe::UsageError& error) {
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
    const int port = free_port();
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
                      expected = std::string("south (rank 1) differs from rank 0 in ") + differs + " (" +
                                 value + "2 instead of " + value + ")";
    CHECK(of_rank(0).find(expected) != std::string::npos);
    CHECK(other.get().find(expected) != std::string::npos);
  }
}

TEST_CASE("texts of any length reach all ranks, or rank 0 alone") {
  const int port = free_port();
  const auto text_of = [](int rank, std::size_t length) {
    std::string text(length, static_cast<char>('a' + rank));
    text += std::to_string(rank);
    return text;
  };
  const auto of_rank = [&](int rank) {
    Rendezvous rendezvous(launch(rank, port), {"north", "south"}, /*timeout_s=*/60);
    // The store itself takes up to 8 MiB in a value.
    std::vector<std::vector<std::string>> out;
    for (const std::size_t length : {std::size_t{0}, std::size_t{1} << 20, std::size_t{20'000'000}}) {
      out.push_back(rendezvous.gather("all " + std::to_string(length), text_of(rank, length)));
      out.push_back(rendezvous.collect("first " + std::to_string(length), text_of(rank, length)));
    }
    return out;
  };
  auto other = std::async(std::launch::async, of_rank, 1);
  const auto first = of_rank(0), second = other.get();
  std::size_t at = 0;
  for (const std::size_t length : {std::size_t{0}, std::size_t{1} << 20, std::size_t{20'000'000}}) {
    const std::vector<std::string> both = {text_of(0, length), text_of(1, length)};
    CHECK((first[at] == both));
    CHECK((second[at] == both));
    CHECK((first[at + 1] == both));
    CHECK(second[at + 1].empty());
    at += 2;
  }
}

TEST_CASE("a site that is lost while all agree, and comes back, makes rank 0 start anew") {
  const int port = free_port();
  const Digest digest = {{"version", "1"}};
  const LostSites lost{.meeting_s = 3600};
  auto first = std::async(std::launch::async, [&] {
    // Longer than the test may take: only the request to start anew ends the waiting.
    Rendezvous rendezvous(launch(0, port), {"north", "south"}, /*timeout_s=*/3600, lost);
    rendezvous.agree(digest);
  });
  {
    // It has written its digest, and ends before it has read that of rank 0.
    Rendezvous ended(launch(1, port), {"north", "south"}, /*timeout_s=*/60, lost);
    ended.post("agree", to_json(digest));
  }
  // It asks rank 0 to start anew, and then finds no rank 0.
  CHECK_THROWS_AS(Rendezvous(launch(1, port), {"north", "south"}, /*timeout_s=*/2, lost), SiteLost);
  CHECK_THROWS_WITH_AS(first.get(), "south (rank 1) has come back", SiteLost);
}

TEST_CASE("sites start at the same moment, however far they are from the first") {
  using clock = std::chrono::steady_clock;
  constexpr auto kLatency = std::chrono::milliseconds(200);
  const int port = free_port();
  clock::time_point started[2];
  const auto run = [&](int rank, int at_port) {
    Rendezvous rendezvous(launch(rank, at_port), {"north", "south"}, /*timeout_s=*/60);
    rendezvous.agree({{"seed", "42"}});
    rendezvous.start_together();
    started[rank] = clock::now();
    rendezvous.gather("end", "");  // keeps rank 0, and so the store, until all ranks are here
  };
  auto first = std::async(std::launch::async, run, 0, port);
  const SlowPath path(port, kLatency);
  auto second = std::async(std::launch::async, run, 1, path.port());
  first.get();
  second.get();
  const auto apart = started[0] < started[1] ? started[1] - started[0] : started[0] - started[1];
  CHECK(apart < kLatency / 2);
}
