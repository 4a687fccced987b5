// Tests how long a process waits for rank 0 and for the others, and what it says meanwhile.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "tests/trainer/support.hpp"
#include "trainer/rendezvous/rendezvous.hpp"
#include "trainer/rendezvous/waiting_notice.hpp"
#include "trainer/store/reaching.hpp"

using namespace fomoe::trainer;

namespace {

/// A port of this machine that accepts connections, into the system's queue, and never answers.
class SilentPort {
 public:
  SilentPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(socket_.get(), 16) == 0);
    REQUIRE(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
    number_ = ntohs(address.sin_port);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  fomoe::Descriptor socket_;
  int number_ = 0;
};

double seconds_of(const std::function<void()>& what) {
  const auto begin = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Launch second_at(int port) {
  Launch launch;
  launch.rank = 1;
  launch.world = 2;
  launch.address = "127.0.0.1";
  launch.port = port;
  return launch;
}

std::string lost(const Launch& launch, double timeout_s) {
  try {
    Rendezvous(launch, {"north", "south"}, timeout_s);
  } catch (const SiteLost& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a port that accepts and never answers is given up within the time-out, whatever the start's") {
  const SilentPort port;
  Launch launch = second_at(port.number());
  launch.start_timeout_s = 3600;
  std::string said;
  CHECK(seconds_of([&] { said = lost(launch, /*timeout_s=*/2); }) < 2 + 2);
  CHECK(said == "north (rank 0) does not answer at 127.0.0.1:" + std::to_string(port.number()) +
                    " within 2 s: it accepts connections and says nothing; another program may listen there "
                    "(MASTER_ADDR, MASTER_PORT)");
}

TEST_CASE("a process waits for rank 0 as long as the start's time-out says, beyond that of a run") {
  const int port = SilentPort().number();  // nobody listens there any more
  Launch launch = second_at(port);
  launch.start_timeout_s = 3;
  std::string said;
  const double waited_s = seconds_of([&] { said = lost(launch, /*timeout_s=*/0.5); });
  CHECK(waited_s >= 3);
  CHECK(waited_s < 3 + 2);
  CHECK(said ==
        "north (rank 0) does not answer at 127.0.0.1:" + std::to_string(port) + " (Connection refused)");
}

TEST_CASE("rank 0 waits for the others as long as the start's time-out says") {
  Launch launch = second_at(SilentPort().number());
  launch.rank = 0;
  launch.start_timeout_s = 3;
  Rendezvous rendezvous(launch, {"north", "south"}, /*timeout_s=*/0.5);
  const double waited_s = seconds_of([&] {
    CHECK_THROWS_WITH_AS(rendezvous.agree({{"seed", "1"}}), "south (rank 1) did not respond within 3 s",
                         SiteLost);
  });
  CHECK(waited_s >= 3);
  CHECK(seconds_of([&] { CHECK_THROWS_AS(rendezvous.gather("later", ""), SiteLost); }) <
        0.5 + 1.5);  // after the start, the time-out of the run holds
}

TEST_CASE("attempts go on while nobody listens, and end at once with an exception of another kind") {
  int attempts = 0;
  const auto later = [&](Deadline) {
    if (++attempts < 3) throw ConnectionLost("refused");
    return attempts;
  };
  std::vector<std::string> reasons;
  Patience patience{60, 60};
  patience.waiting = [&](const std::string& why, double) { reasons.push_back(why); };
  CHECK(reached(patience, later) == 3);
  CHECK((reasons == std::vector<std::string>{"refused", "refused"}));
  const auto refused = [&](Deadline) -> int { throw NotAuthentic("no"); };
  CHECK_THROWS_AS(reached(patience, refused), NotAuthentic);
}

TEST_CASE("a process says for whom it waits after 10 s and then each minute") {
  double now_s = 1000;
  std::vector<std::string> lines;
  WaitingNotice notice([&](const std::string& line) { lines.push_back(line); }, [&] { return now_s; });
  std::vector<double> at_s;
  std::string whom = "south (rank 1)";
  for (; now_s <= 1000 + 140; now_s += 1) {
    const std::size_t before = lines.size();
    notice.waits(7200, [&] { return whom; });
    if (lines.size() > before) at_s.push_back(now_s - 1000);
    if (now_s == 1100) whom = "";  // it has just come
  }
  CHECK((at_s == std::vector<double>{10, 70}));
  CHECK(lines[0] == "has waited 10 s for south (rank 1), for at most 2 h 0 min in all");
  CHECK(lines[1] == "has waited 70 s for south (rank 1), for at most 2 h 0 min in all");
}
