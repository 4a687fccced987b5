// Tests that strangers who connect to the ports of a run do not disturb it: they send garbage, or stay
// silent.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <atomic>
#include <random>
#include <set>
#include <sstream>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

namespace {

/// Ports of this machine on which the process listens.
std::set<int> listening_ports(pid_t process) {
  std::set<std::string> own;  // "socket:[inode]"
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(process) + "/fd", gone))
    own.insert(fs::read_symlink(entry.path(), gone).string());
  std::set<int> ports;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // the header
    while (std::getline(file, line)) {
      std::istringstream words(line);
      const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
      if (word.size() > 9 && word[3] == "0A" && own.contains("socket:[" + word[9] + "]"))
        ports.insert(std::stoi(word[1].substr(word[1].find(':') + 1), nullptr, 16));
    }
  }
  return ports;
}

class Stranger {
 public:
  void visit(int port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      std::string bytes(1 + drawn_() % 3000, '\xff');
      for (char& byte : bytes) byte = static_cast<char>(drawn_());
      if (drawn_() % 2 == 0)
        bytes = static_cast<char>(drawn_() % 16) + std::string(64, '\xff');  // like a request
      if (drawn_() % 3 > 0) (void)!::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (drawn_() % 2 == 0) return open_.push_back(socket);  // stays there, silent
    }
    ::close(socket);
  }
  ~Stranger() {
    for (const int socket : open_) ::close(socket);
  }

 private:
  std::mt19937 drawn_{7};
  std::vector<int> open_;
};

}  // namespace

TEST_CASE("strangers who send garbage to all ports of a run, or stay silent, do not disturb it") {
  const Folder folder;
  const int port = 20'000 + (::getpid() + 877) % 10'000;
  const std::vector<std::string> settings = {"workload.tokens=262144", "platform.sites=2",
                                             "trainer.timeout=30s"};
  REQUIRE(run(train(settings, {"--in-turn", "--checkpoints", folder / "alone"})).status == 0);
  std::map<int, Process> sites;
  const auto start = [&](int rank) {
    sites.emplace(rank,
                  Process(train(settings, {"--checkpoints", folder / "run"}), folder / std::to_string(rank),
                          {{"RANK", std::to_string(rank)},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", std::to_string(port)}}));
  };
  start(0);
  std::atomic<bool> over = false;
  std::set<int> visited;
  std::thread visits([&, first = sites.at(0).id()] {
    Stranger stranger;
    while (!over) {
      for (const int listening : listening_ports(first)) {
        visited.insert(listening);
        stranger.visit(listening);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  std::this_thread::sleep_for(
      std::chrono::seconds(2));  // the store of rank 0 waits, and hears strangers first
  start(1);
  const int first = sites.at(0).wait(120), second = sites.at(1).wait(120);
  over = true;
  visits.join();
  CAPTURE(content(folder / "0"));
  CAPTURE(content(folder / "1"));
  CHECK(first == 0);
  CHECK(second == 0);
  CHECK(visited.contains(port));
  CHECK(visited.size() > 1);  // also the port for the other sites
  CHECK(state_after(folder / "run", 4, 2) == state_after(folder / "alone", 4, 2));
}
