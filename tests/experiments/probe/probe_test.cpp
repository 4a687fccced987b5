// Tests of the parts of `fomoe probe` without a network: the reports of iperf3, the platform file from
// measurements, and the rendezvous of the sites. tests/wan has the tests over real links.
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "experiments/files/platform_file.hpp"
#include "experiments/probe/coordinator.hpp"
#include "experiments/probe/external_program.hpp"
#include "experiments/probe/iperf3_json.hpp"
#include "experiments/probe/launch.hpp"
#include "experiments/probe/site.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::probe;
using namespace fomoe::tests;
using nlohmann::json;

namespace {

std::string saved(const std::string& name) {
  return read_all(source_dir() + "/tests/experiments/data/iperf3/" + name);
}

std::string complaint(const std::string& text) {
  try {
    (void)read_iperf3(text);
  } catch (const Iperf3Error& error) {
    return error.what();
  }
  return "accepted";
}

constexpr double kMbps = 1e6 / 8;

/// Measurements of three sites: a and b send 100 Mbit/s, c sends 40; every path carries 80; round trips take
/// 20 ms.
Measurements three_sites() {
  Measurements m;
  m.sites = {"a", "b", "c"};
  m.pairs.resize(9);
  m.iperf3_version = "3.12";
  m.date = "2026-11-21";
  m.seconds = 3;
  m.repetitions = 3;
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      if (from == to) continue;
      PairMeasurements& pair = m.pair(from, to);
      pair.round_trips_s = {0.021, 0.020, 0.019};
      const double own = from == 2 ? 40 * kMbps : 80 * kMbps;
      pair.alone[1] = {30 * kMbps, 31 * kMbps, 35 * kMbps};
      pair.alone[4] = {own, own * 1.01, own * 0.98};
      pair.together = {own, own, own * 0.99};
      const double half = from == 2 ? 20 * kMbps : 50 * kMbps;
      pair.with_the_senders_others = {half, half * 0.98, half * 1.02};
      pair.with_the_receivers_others = {own * 0.75, own * 0.75, own * 0.75};
    }
  }
  return m;
}

platforms::Platform read_back(const Measurements& measured) {
  const Folder folder;
  write_all(folder / "p.toml", platform_toml(measured, "p"));
  return scenario::read_platform_file(folder / "p.toml");
}

Hello hello(int rank, const std::string& name, const std::string& host = "host") {
  return {rank, 3, name, host, "", "3.12"};
}

/// Returns the two ends of a connection on this machine.
std::pair<LineSocket, LineSocket> ends() {
  const auto listener = listen_on(0);
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  REQUIRE(::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  // The port is at the same offset in both address families.
  const int port = ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  Descriptor near = connect_to("127.0.0.1", port, now_s() + 5);
  auto far = accept_from(*listener, now_s() + 5);
  REQUIRE(far);
  return {LineSocket(std::move(near)), LineSocket(std::move(*far))};
}

}  // namespace

TEST_CASE("probe: a report of iperf3 gives the received rate, TCP's round trip and the version") {
  const Iperf3Transfer one = read_iperf3(saved("one-stream.json"));
  const json report = json::parse(saved("one-stream.json"));
  CHECK(one.bytes_per_s == report["end"]["sum_received"]["bits_per_second"].get<double>() / 8);
  CHECK(one.streams == 1);
  CHECK(one.version == "3.12");
  REQUIRE(one.round_trip_s);
  CHECK(*one.round_trip_s * 1e6 ==
        doctest::Approx(report["end"]["streams"][0]["sender"]["min_rtt"].get<double>()));
  const Iperf3Transfer four = read_iperf3(saved("four-streams.json"));
  CHECK(four.streams == 4);
  double sum = 0;
  const json streams = json::parse(saved("four-streams.json"))["end"]["streams"];
  for (const json& stream : streams) sum += stream["receiver"]["bits_per_second"].get<double>() / 8;
  CHECK(four.bytes_per_s == doctest::Approx(sum).epsilon(1e-6));
}

TEST_CASE("probe: iperf3's errors are passed on in its own words, and other reports are refused") {
  CHECK(complaint(saved("refused.json")).find("unable to connect to server") != std::string::npos);
  CHECK(complaint(saved("udp.json")).find("the report is of UDP; expected TCP") == 0);
  CHECK(complaint("iperf3: command not found") == "the output is not a JSON object");
  CHECK(complaint("{}").find("the output is not a report of iperf3 -c HOST -J") == 0);
  json nothing = json::parse(saved("one-stream.json"));
  nothing["end"]["sum_received"]["bits_per_second"] = 0;
  CHECK(complaint(nothing.dump()) == "no data arrived");
  nothing["start"]["test_start"]["reverse"] = 1;
  CHECK(complaint(nothing.dump()).find("a test with --reverse") != std::string::npos);
}

TEST_CASE("probe: numbers that no report of iperf3 contains are refused") {
  json report = json::parse(saved("one-stream.json"));
  report["start"]["test_start"]["num_streams"] = 1e300;
  CHECK(complaint(report.dump()) == "the report contains the number 1e+300");
  report["start"]["test_start"]["num_streams"] = 1;
  report["end"]["sum_sent"]["retransmits"] = -1e300;
  CHECK(complaint(report.dump()) == "the report contains the number -1e+300");
}

TEST_CASE("probe: a spread is the minimum, the median and the maximum") {
  const Spread three = spread_of({3, 1, 2}), four = spread_of({4, 1, 2, 3}), one = spread_of({7});
  CHECK(three.least == 1);
  CHECK(three.median == 2);
  CHECK(three.most == 3);
  CHECK(four.median == 2.5);
  CHECK(one.least == 7);
  CHECK(one.most == 7);
}

TEST_CASE("probe: measurements by hand become a platform that the reader accepts") {
  const platforms::Platform p = read_back(three_sites());
  REQUIRE(p.size() == 3);
  CHECK(p.sites[0].name == "a");
  // Two concurrent transfers of 50 are faster than the best path alone, 80: a's uplink is 100.
  CHECK(p.sites[0].uplink_bytes_per_s == doctest::Approx(100 * kMbps));
  // c sends 20 + 20 concurrently, as much as alone.
  CHECK(p.sites[2].uplink_bytes_per_s == doctest::Approx(40 * kMbps));
  // Concurrently, b sends 60 and c sends 30 into a. b receives the same rates. c receives 60 + 60.
  CHECK(p.sites[0].downlink_bytes_per_s == doctest::Approx(90 * kMbps));
  CHECK(p.sites[2].downlink_bytes_per_s == doctest::Approx(120 * kMbps));
  // A path's rate is the median with the best number of streams; its latency is half of the median round
  // trip.
  CHECK(p.path(0, 1).bandwidth_bytes_per_s == doctest::Approx(80 * kMbps));
  CHECK(p.path(2, 1).bandwidth_bytes_per_s == doctest::Approx(40 * kMbps));
  CHECK(p.path(0, 1).latency_s == doctest::Approx(0.010));
  REQUIRE(p.provenance.size() == 2);
  for (const Provenance& one : p.provenance) {
    CHECK(one.origin == Origin::measured);
    CHECK(one.detail.find(
              "fomoe probe, 2026-11-21: iperf3 3.12, the best of 1, 4 streams, 3 s each, 3 times") !=
          std::string::npos);
  }
}

TEST_CASE("probe: a platform file that does not claim to be measured is assumed") {
  const Folder folder;
  std::string text = platform_toml(three_sites(), "p");
  const std::string line = "measured = true\n";
  REQUIRE(text.find(line) != std::string::npos);
  text.erase(text.find(line), line.size());
  write_all(folder / "p.toml", text);
  for (const Provenance& one : scenario::read_platform_file(folder / "p.toml").provenance)
    CHECK(one.origin == Origin::assumed);
}

TEST_CASE("probe: the platform file has the spread of every number") {
  const std::string text = platform_toml(three_sites(), "p \"q\"");
  CHECK(text.find("name = \"p _q_\"") != std::string::npos);
  CHECK(text.find("latency = \"10ms\"  # round trip 20ms (19ms to 21ms, 3 times)\n"
                  "bandwidth = \"80Mbps\"  # 78.4Mbps to 80.8Mbps, 4 streams\n"
                  "connection_bandwidth = \"31Mbps\"  # 30Mbps to 35Mbps, 1 stream\n"
                  "# while every site sent and received: 80Mbps (79.2Mbps to 80Mbps)\n") !=
        std::string::npos);
  CHECK(text.find("\nconnections = 4\n") != std::string::npos);
  CHECK(text.find("uplink = \"100Mbps\"  # 98Mbps to 102Mbps, with all 2 other sites at once\n") !=
        std::string::npos);
}

TEST_CASE("probe: concurrent transfers use the most streams that reach about the best rate alone") {
  Measurements m = three_sites();
  CHECK(streams_beside_others(m, 0, 1) == 4);
  m.pair(0, 1).alone[16] = {77 * kMbps, 77 * kMbps, 70 * kMbps};  // 96 % of 80
  CHECK(path_rate(m, 0, 1).streams == 4);
  CHECK(streams_beside_others(m, 0, 1) == 16);
  m.pair(0, 1).alone[16] = {75 * kMbps, 75 * kMbps, 80 * kMbps};  // 94 %
  CHECK(streams_beside_others(m, 0, 1) == 4);
}

TEST_CASE("probe: a site's own link is at least as fast as its fastest path, whatever other sites limit") {
  Measurements m = three_sites();
  for (int to : {1, 2}) m.pair(0, to).with_the_senders_others = {10 * kMbps, 10 * kMbps, 10 * kMbps};
  CHECK(uplink(m, 0).bytes_per_s.median == doctest::Approx(80 * kMbps));
  CHECK_FALSE(uplink(m, 0).several);
  CHECK(platform_toml(m, "p").find("with one site, because all sites at once gave less") !=
        std::string::npos);
}

TEST_CASE(
    "probe: a path that is slower beside others is named, since the file cannot describe shared links") {
  Measurements m = three_sites();
  CHECK(shared_paths(m).empty());
  m.pair(0, 1).together = {71 * kMbps, 60 * kMbps, 70 * kMbps};
  const auto found = shared_paths(m);
  REQUIRE(found.size() == 1);
  CHECK(found[0].got_bytes_per_s == doctest::Approx(70 * kMbps));
  CHECK(found[0].expected_bytes_per_s == doctest::Approx(80 * kMbps));
  CHECK(
      warnings(m)[0].starts_with("a to b: 70Mbps while every site sent to one site and received from one "
                                 "site, 88 % of the 80Mbps without other transfers"));
  CHECK(platform_toml(m, "p").find("# a to b: 70Mbps while") != std::string::npos);
  CHECK(read_back(m).size() == 3);
}

TEST_CASE("probe: a site's rank and number of sites come from the launcher's environment variables") {
  std::map<std::string, std::string> variables = {
      {"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
  const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  CHECK(read_launch(environment).rank == 1);
  CHECK(read_launch(environment).world == 4);
  CHECK(read_launch(environment).port == 29500);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";  // torchrun's store listens on the given port
  CHECK(read_launch(environment).port == 29501);
  variables["RANK"] = "4";
  CHECK_THROWS_WITH_AS(read_launch(environment),
                       "RANK: got \"4\"; expected a whole number from 0 to 3; for example RANK=0",
                       InputError);
  variables.erase("RANK");
  CHECK_THROWS_AS(read_launch(environment), InputError);
  variables["SLURM_PROCID"] = "2";
  variables["SLURM_NTASKS"] = "3";
  CHECK(read_launch(environment).rank == 2);
  CHECK(read_launch(environment).world == 3);
}

TEST_CASE("probe: a site's name is given or its host's, with the rank if two sites share a host") {
  using Names = std::vector<std::string>;
  CHECK(site_names({hello(0, "paris"), hello(1, "", "h1"), hello(2, "", "h2")}) ==
        Names{"paris", "h1", "h2"});
  CHECK(site_names({hello(0, ""), hello(1, ""), hello(2, "tokyo")}) == Names{"host-0", "host-1", "tokyo"});
  CHECK_THROWS_AS(site_names({hello(0, "paris"), hello(1, "tokyo"), hello(2, "paris")}), std::runtime_error);
}

TEST_CASE("probe: messages are whole lines of JSON, with a time limit, from a peer that is connected") {
  auto [near, far] = ends();
  near.send({{"id", 1}});
  near.send({{"id", 2}, {"error", "ü\n"}});
  CHECK((*far.receive(now_s() + 5))["id"] == 1);
  CHECK((*far.receive(now_s() + 5))["error"] == "ü\n");
  const double begin_s = now_s();
  CHECK_FALSE(far.receive(begin_s + 0.05));
  CHECK(now_s() - begin_s >= 0.05);
  REQUIRE(::send(near.descriptor(), "GET / HTTP/1.0\n", 15, 0) == 15);
  CHECK_THROWS_AS(far.receive(now_s() + 5), ConnectionLost);
  auto [left, right] = ends();
  { const LineSocket gone = std::move(left); }
  CHECK_THROWS_WITH_AS(right.receive(now_s() + 5), "closed the connection", ConnectionLost);
}

TEST_CASE("probe: wrong messages end the connection, not the program") {
  const auto sent_by_rank0 = [](const std::string& text) {
    auto [rank0, site] = ends();
    REQUIRE(::send(rank0.descriptor(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    return serve_site(site, 5201);
  };
  // Copies of JSON call themselves for each level; a line of 1 MiB may have half a million levels.
  const std::string deep = R"({"id":1,"x":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}\n";
  CHECK_THROWS_WITH_AS(sent_by_rank0(deep), "sends JSON of too many levels", ConnectionLost);
  // Values of other types count as missing.
  CHECK(sent_by_rank0("{\"do\": 1}\n{\"do\": \"stop\", \"of\": \"x\"}\n{\"do\": \"end\", \"error\": 2}\n")
            .empty());
  CHECK(whole_number({{"port", 5201}}, "port") == 5201);
  for (const json& wrong : {json(1e300), json(-1), json(1LL << 40), json("5201"), json(nullptr)})
    CHECK_THROWS_WITH_AS(whole_number({{"port", wrong}}, "port"), "sends no whole number as \"port\"",
                         ConnectionLost);
}

TEST_CASE("probe: a site that does not connect is named, and the sites that did connect are told") {
  const auto listener = listen_on(0);
  auto [own, own_site] = ends();
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  REQUIRE(::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  const int port = ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  LineSocket one(connect_to("127.0.0.1", port, now_s() + 5));
  one.send(to_json(hello(1, "tokyo")));
  try {
    (void)gather_sites(*listener, hello(0, "paris"), std::move(own), now_s() + 0.5);
    FAIL("rank 2 never came");
  } catch (const SiteLost& error) {
    CHECK(std::string(error.what()).starts_with("rank 2 did not connect"));
  }
  CHECK((*one.receive(now_s() + 5))["error"].get<std::string>().starts_with("rank 2 did not connect"));
}

TEST_CASE("probe: the output of a child process is read, and waiting for its end has a time limit") {
  ExternalProgram well({"sh", "-c", "echo out; echo err >&2; exit 3"});
  CHECK(well.wait_for_output("out", now_s() + 5));
  CHECK(well.wait(now_s() + 5) == 3);
  CHECK(well.output() == "out\nerr\n");
  ExternalProgram slow({"sleep", "60"});
  const double begin_s = now_s();
  CHECK_FALSE(slow.wait(begin_s + 0.1));
  CHECK(now_s() - begin_s < 5);
  CHECK_THROWS_AS(ExternalProgram({"no-such-program-anywhere"}), std::runtime_error);
}
