// Tests the sockets of a run: their addresses, ports and number, and keepalive.
#include <arpa/inet.h>
#include <doctest/doctest.h>

#include <set>
#include <sstream>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

namespace {

struct Socket {
  std::string address;  // local
  int port = 0, peer_port = 0;
  bool listens = false, connected = false, keepalive = false;
};

/// The sockets in the format of /proc/net/tcp; IPv6 is left out.
std::vector<Socket> sockets_in(const std::string& text) {
  std::vector<Socket> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer;
    words >> number >> local >> remote >> state >> queues >> timer;
    if (local.size() != 13 || local[8] != ':') continue;
    in_addr address{static_cast<in_addr_t>(std::stoul(local.substr(0, 8), nullptr, 16))};
    out.push_back({::inet_ntoa(address), std::stoi(local.substr(9), nullptr, 16),
                   std::stoi(remote.substr(9), nullptr, 16), state == "0A", state == "01",
                   timer.starts_with("02")});
  }
  return out;
}

/// Runs the command in a network of its own, whose sockets it notes while it runs.
struct InOwnNetwork {
  InOwnNetwork(const std::vector<std::string>& command, const std::string& before) {
    const Folder folder;
    std::ofstream script(folder / "script");
    script << "ip link set lo up\n" << before << '\n';
    for (const std::string& word : command) script << '\'' << word << "' ";
    script << "2> " << folder / "said"
           << " > /dev/null &\n"
           << "while kill -0 $! 2> /dev/null; do cat /proc/net/tcp >> " << folder / "sockets"
           << "; sleep 0.05; done\nwait $!\n";
    script.close();
    status = run({"/usr/bin/unshare", "--user", "--map-root-user", "--net", "/bin/bash", folder / "script"})
                 .status;
    said = content(folder / "said");
    sockets = sockets_in(content(folder / "sockets"));
  }
  int status = 0;
  std::string said;
  std::vector<Socket> sockets;
};

const std::vector<std::string> kTwo = {"workload.tokens=65536", "platform.sites=2", "strategy.method=diloco",
                                       "strategy.local_steps=4"};

/// Runs long enough that its sockets are seen.
std::vector<std::string> paced_for_some_seconds(std::vector<std::string> more) {
  std::vector<std::string> options = {"--local", "--paced"};
  options.insert(options.end(), more.begin(), more.end());
  std::vector<std::string> settings = kTwo;
  settings.insert(settings.end(), {"compute.step_time=100ms", "workload.tokens=163840"});
  return train(settings, options);
}

}  // namespace

TEST_CASE("all ports of a run are in net.ipv4.ip_local_port_range, and its connections have keepalive") {
  const InOwnNetwork seen(paced_for_some_seconds({}),
                          "echo '40000 40080' > /proc/sys/net/ipv4/ip_local_port_range");
  CAPTURE(seen.said);
  REQUIRE(seen.status == 0);
  int listening = 0, kept = 0;
  for (const Socket& socket : seen.sockets) {
    if (socket.listens) {
      ++listening;
      CHECK(socket.port >= 40000);
      CHECK(socket.port <= 40080);
    }
    kept += socket.connected && socket.keepalive ? 1 : 0;
  }
  CHECK(listening > 0);
  CHECK(kept > 0);
}

TEST_CASE("--interface chooses the address at which the processes listen") {
  const auto loopback_only = [](const InOwnNetwork& seen, const std::string& address) {
    std::set<std::string> addresses;
    for (const Socket& socket : seen.sockets) {
      if (socket.listens && socket.address != "0.0.0.0") addresses.insert(socket.address);
    }
    return addresses == std::set<std::string>{address};
  };
  const std::string second =
      "ip tuntap add dev other mode tun; ip addr add 10.9.8.7/24 dev other; ip link set other up";
  const InOwnNetwork chosen(paced_for_some_seconds({"--interface", "other"}), second);
  CAPTURE(chosen.said);
  REQUIRE(chosen.status == 0);
  CHECK(loopback_only(chosen, "10.9.8.7"));
  const InOwnNetwork usual(paced_for_some_seconds({}), second);
  REQUIRE(usual.status == 0);
  CHECK(loopback_only(usual, "127.0.0.1"));

  const Ended unknown = run(train(kTwo, {"--local", "--interface", "wg77"}));
  CAPTURE(unknown.said);
  CHECK(unknown.status == 2);
  CHECK(unknown.said.find(
            "--interface: got \"wg77\"; expected a network interface of this machine or one of its "
            "addresses: lo (127.0.0.1)") != std::string::npos);
  CHECK(run(train(kTwo, {"--in-turn", "--interface", "lo"})).status == 2);
}

TEST_CASE(
    "several connections, and receives posted further ahead, carry the same bytes and end in the same "
    "weights") {
  const Folder folder;
  // Transfers of 0.5 MB are divided among four connections.
  std::vector<std::string> one = kTwo;
  one.emplace_back("model.d_model=128");
  std::vector<std::string> four = one;
  four.insert(four.end(), {"network_model.streams=4", "network_model.receives_ahead=3"});
  const auto report = [&](const std::vector<std::string>& settings, const std::string& name) {
    const Ended ended = run(
        train(settings, {"--local", "--checkpoints", folder / name, "--output", folder / (name + ".json")}));
    CAPTURE(ended.said);
    REQUIRE(ended.status == 0);
    return nlohmann::json::parse(content(folder / (name + ".json")));
  };
  const auto with_one = report(one, "one"), with_four = report(four, "four");
  CHECK(with_one["sites"][0]["bytes_sent"] == with_four["sites"][0]["bytes_sent"]);
  CHECK(with_one["quality"]["perplexity"] == with_four["quality"]["perplexity"]);
  const Ended many = run(train(kTwo, {"--local", "--set", "network_model.streams=65"}));
  CHECK(many.status == 2);
  CHECK(many.said.find("network_model.streams: got 65; expected at most 64") != std::string::npos);

  const auto connections = [](const InOwnNetwork& seen) {
    std::set<std::pair<int, int>> pairs;  // each connection once: by its accepting port and the other one
    std::set<int> listening;
    for (const Socket& socket : seen.sockets) {
      if (socket.listens && socket.address != "0.0.0.0") listening.insert(socket.port);
    }
    for (const Socket& socket : seen.sockets) {
      if (socket.connected && listening.contains(socket.port)) pairs.emplace(socket.port, socket.peer_port);
    }
    return pairs.size();
  };
  const InOwnNetwork single(paced_for_some_seconds({}), "true");
  const InOwnNetwork divided(paced_for_some_seconds({"--set", "network_model.streams=4"}), "true");
  REQUIRE(divided.status == 0);
  CHECK(connections(single) == 1);
  CHECK(connections(divided) == 4);
}
