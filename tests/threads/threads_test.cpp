// The threads of the project, as busy as they can be: the pool of the trainer's transfers, the store of a run
// with strangers at its port, and the sites of fomoe probe. tools/tsan.sh compiles this file and what it
// tests with the thread sanitizer, which needs neither LibTorch nor SimGrid here. `fomoe sweep` and `fomoe
// explore` have processes instead of threads.
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "experiments/probe/line_socket.hpp"
#include "experiments/probe/site.hpp"
#include "trainer/execution/background.hpp"
#include "trainer/store/store_server.hpp"

using namespace fomoe;
using nlohmann::json;

TEST_CASE("the pool of transfers: tasks from several threads, errors, and an end while tasks wait") {
  for (const std::size_t most : {1UL, 4UL, 1024UL}) {
    std::atomic<int> done = 0;
    {
      trainer::Background pool(most);
      std::mutex lock;  // run() belongs to one thread at a time, as in the executor
      std::vector<std::thread> callers;
      for (int caller = 0; caller < 4; ++caller) {
        callers.emplace_back([&] {
          for (int i = 0; i < 100; ++i) {
            std::future<void> task;
            {
              const std::lock_guard held(lock);
              task = pool.run([&done, i] {
                ++done;
                if (i % 10 == 0) throw std::runtime_error("a transfer fails");
              });
            }
            if (i % 10 == 0) {
              CHECK_THROWS_AS(task.get(), std::runtime_error);
            } else {
              task.get();
            }
          }
        });
      }
      for (std::thread& caller : callers) caller.join();
      CHECK(done == 400);
      for (int i = 0; i < 50; ++i) (void)pool.run([&done] { ++done; });  // dropped, or not
    }
    CHECK(done >= 400);
  }
}

namespace {

const std::string kSecret(40, 's');

/// A free port of this machine.
int free_port() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  return ntohs(address.sin_port);
}

void send_garbage(int port, unsigned seed) {
  std::mt19937 drawn(seed);
  const Descriptor socket = trainer::connect_to("127.0.0.1", port, trainer::seconds_from_now(10));
  std::string bytes(drawn() % 200, '\0');
  for (char& byte : bytes) byte = static_cast<char>(drawn());
  (void)!::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

}  // namespace

TEST_CASE(
    "the store of a run: sites that count, wait and exchange, strangers at the port, and an end while a site "
    "waits") {
  using trainer::StoreRequest;
  const int port = free_port();
  std::atomic<int> refused = 0;
  auto server = std::make_unique<trainer::StoreServer>(
      "127.0.0.1", port, kSecret, [&](const std::string&, const std::string&) { ++refused; });
  constexpr int kSites = 4, kTurns = 100;
  std::atomic<int> lost = 0;
  std::vector<std::thread> sites;
  for (int site = 0; site < kSites; ++site) {
    sites.emplace_back([&, site] {
      const trainer::Deadline deadline = trainer::seconds_from_now(120);
      trainer::Channel channel =
          trainer::Channel::as_client(trainer::connect_to("127.0.0.1", port, deadline), kSecret, deadline);
      const auto ask = [&](const StoreRequest& request) {
        channel.send(to_text(request), deadline);
        return trainer::answer_from(channel.receive(deadline));
      };
      for (int turn = 0; turn < kTurns; ++turn) {
        const std::string key = std::to_string(turn);
        (void)ask({StoreRequest::Kind::add, {"count"}, 1});
        (void)ask({StoreRequest::Kind::set, {key + "/" + std::to_string(site), std::string(1000, 'v')}});
        const std::string next = key + "/" + std::to_string((site + 1) % kSites);
        if (ask({StoreRequest::Kind::get, {next}, 60'000}).value.size() != 1000) ++lost;
        (void)ask({StoreRequest::Kind::compare_set, {"owner", "", key}});
      }
      try {
        if (ask({StoreRequest::Kind::wait, {"never"}, 60'000}).done) ++lost;
      } catch (const trainer::ConnectionLost&) {  // the store has ended, as the other answer says, too
      }
    });
  }
  std::thread strangers([&] {
    for (unsigned seed = 0; seed < 60; ++seed) send_garbage(port, seed);
  });
  strangers.join();
  const auto total = [&] {
    const trainer::StoreAnswer answer = server->contents().answer({StoreRequest::Kind::add, {"count"}, 0});
    return answer.number;
  };
  for (int i = 0; i < 6000 && total() < kSites * kTurns; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(total() == kSites * kTurns);
  std::this_thread::sleep_for(
      std::chrono::milliseconds(300));  // the sites now wait for a key that never comes
  std::vector<std::thread> ends;
  server.reset();
  for (std::thread& site : sites) {
    ends.emplace_back([&site] { site.join(); });
  }
  for (std::thread& end : ends) end.join();
  CHECK(lost == 0);
}

TEST_CASE(
    "the sites of fomoe probe: several measurements at once, one that is stopped, and an end in the middle") {
  std::vector<probe::LineSocket> rank0;
  std::vector<std::thread> sites;
  for (int site = 0; site < 2; ++site) {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    rank0.emplace_back(Descriptor(ends[0]));
    sites.emplace_back([other = probe::LineSocket(Descriptor(ends[1])), site]() mutable {
      try {
        (void)probe::serve_site(other, 5301 + 100 * site);
      } catch (const probe::ConnectionLost&) {
      }
    });
  }
  const auto ask = [&](int site, const json& line) { rank0[static_cast<std::size_t>(site)].send(line); };
  const auto hear = [&](int site) {
    const auto line = rank0[static_cast<std::size_t>(site)].receive(probe::now_s() + 60);
    REQUIRE(line.has_value());
    return *line;
  };
  std::vector<int> ports;
  for (int id = 1; id <= 4; ++id) {
    ask(0, {{"id", id}, {"do", "echo"}, {"limit_s", 30}});
    ports.push_back(hear(0).at("port"));
  }
  for (int id = 1; id <= 4; ++id) {
    const int port = ports[static_cast<std::size_t>(id - 1)];
    ask(1,
        {{"id", id}, {"do", "ping"}, {"host", "127.0.0.1"}, {"port", port}, {"count", 50}, {"limit_s", 30}});
  }
  for (int id = 1; id <= 4; ++id) CHECK(hear(1).contains("round_trips_s"));
  ask(0, {{"id", 9}, {"do", "echo"}, {"limit_s", 30}});
  (void)hear(0);
  ask(0, {{"do", "stop"}, {"of", 9}});
  ask(0, {{"id", 10}, {"do", "echo"}, {"limit_s", 30}});  // nobody comes before the end
  (void)hear(0);
  ask(0, {{"do", "end"}, {"error", ""}});
  rank0.clear();
  for (std::thread& site : sites) site.join();
}
