// Tests of platforms in a scenario file: presets, sites drawn from measured ones, gateways, backbones and
// traces.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "experiments/scenario/scenario_reader.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using nlohmann::json;

namespace {

platforms::Platform platform(const std::vector<std::string>& overrides,
                             const std::string& name = "two-sites") {
  scenario::ReadOptions options;
  options.overrides = overrides;
  options.overrides.push_back("compute.step_time=420ms");
  options.overrides.push_back("workload.global_batch_sequences=2048");
  options.overrides.push_back("strategy.method=diloco");
  return scenario::read_scenario(source_dir() + "/experiments/scenarios/" + name + ".toml", options).platform;
}

/// The terms of a Linux host with a platform file of two sites, and these lines at its top.
costmodel::NetworkModel linux_terms(const std::string& lines,
                                    const std::vector<std::string>& overrides = {}) {
  const Folder folder;
  std::ofstream(folder / "p.toml") << "name = \"p\"\nsource = \"a test\"\n" + lines +
                                          "[[site]]\nname = \"a\"\nuplink = \"1Gbps\"\ndownlink = \"1Gbps\"\n"
                                          "[[site]]\nname = \"b\"\nuplink = \"1Gbps\"\ndownlink = \"1Gbps\"\n"
                                          "[default_path]\nlatency = \"1ms\"\n";
  scenario::ReadOptions options;
  options.overrides = overrides;
  for (const char* one : {"compute.step_time=420ms", "network_model.host=linux"})
    options.overrides.emplace_back(one);
  options.overrides.push_back("platform.file=" + (folder / "p.toml"));
  return scenario::read_scenario(source_dir() + "/tests/ideal/two-sites.toml", options).network;
}

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("preset consumer: 100 Mb/s down, 20 Mb/s up, 15 ms one way") {
  const platforms::Platform p = platform({"platform.preset=consumer", "platform.sites=5"});
  REQUIRE(p.size() == 5);
  CHECK(p.sites[4].uplink_bytes_per_s == 2.5e6);
  CHECK(p.sites[4].downlink_bytes_per_s == 12.5e6);
  CHECK(p.path(0, 4).latency_s == doctest::Approx(0.015));
}

TEST_CASE("rate_factor multiplies every rate and no latency, and the platform is then assumed") {
  const platforms::Platform measured = platform({}, "eight-regions"),
                            p = platform({"platform.rate_factor=2.5"}, "eight-regions");
  CHECK(p.sites[3].uplink_bytes_per_s == measured.sites[3].uplink_bytes_per_s * 2.5);
  CHECK(p.path(0, 5).bandwidth_bytes_per_s == measured.path(0, 5).bandwidth_bytes_per_s * 2.5);
  CHECK(p.path(0, 5).latency_s == measured.path(0, 5).latency_s);
  CHECK(p.provenance.size() == measured.provenance.size() + 1);
  CHECK(p.provenance.back().origin == Origin::assumed);
}

TEST_CASE("preset two-continents: 40 ms and one shared 10 Gb/s link in each direction between the halves") {
  const platforms::Platform p = platform({"platform.preset=two-continents", "platform.sites=5"});
  CHECK(p.sites[2].region == "west");
  CHECK(p.sites[3].region == "east");
  CHECK(p.path(0, 2).latency_s == doctest::Approx(0.005));
  CHECK(p.shared_by(0, 2).empty());
  CHECK(p.path(0, 3).latency_s == doctest::Approx(0.040));
  REQUIRE(p.shared_by(0, 3).size() == 1);
  CHECK(p.shared_links[static_cast<std::size_t>(p.shared_by(0, 3)[0])].name == "backbone west to east");
  CHECK(p.shared_links[static_cast<std::size_t>(p.shared_by(3, 0)[0])].name == "backbone east to west");
  CHECK(p.shared_links[0].bandwidth_bytes_per_s == 1.25e9);
}

TEST_CASE(
    "generated platforms have the given number of sites, resemble the measured ones, and repeat by seed") {
  const std::vector<std::string> drawn = {"platform.generate=true", "platform.sites=200",
                                          "platform.rate_spread=0.2"};
  const platforms::Platform p = platform(drawn, "eight-regions"), q = platform(drawn, "eight-regions");
  const platforms::Platform measured = platform({}, "eight-regions");
  REQUIRE(p.size() == 200);
  double log_sum = 0, log_squares = 0;
  int pairs = 0;
  for (int a = 0; a < 200; ++a) {
    CHECK(p.sites[static_cast<std::size_t>(a)].name == q.sites[static_cast<std::size_t>(a)].name);
    CHECK(p.sites[static_cast<std::size_t>(a)].uplink_bytes_per_s ==
          q.sites[static_cast<std::size_t>(a)].uplink_bytes_per_s);
    for (int b = 0; b < 200; ++b) {
      const auto like = [&](int site) {
        const std::string& name = p.sites[static_cast<std::size_t>(site)].name;
        for (int i = 0; i < measured.size(); ++i) {
          if (name.starts_with(measured.sites[static_cast<std::size_t>(i)].name + "#")) return i;
        }
        return -1;
      };
      if (a == b) continue;
      const int from = like(a), to = like(b);
      REQUIRE((from >= 0 && to >= 0));
      if (from == to) {
        CHECK(p.path(a, b).latency_s == 0.0005);
        continue;
      }
      CHECK(p.path(a, b).latency_s == measured.path(from, to).latency_s);
      const double log =
          std::log(p.path(a, b).bandwidth_bytes_per_s / measured.path(from, to).bandwidth_bytes_per_s);
      log_sum += log;
      log_squares += log * log;
      ++pairs;
    }
  }
  CHECK(std::abs(log_sum / pairs) < 4 * 0.2 / std::sqrt(pairs));
  CHECK(std::sqrt(log_squares / pairs) == doctest::Approx(0.2).epsilon(0.02));
  auto other = drawn;
  other.push_back("seed=7");
  CHECK(platform(other, "eight-regions").sites[0].uplink_bytes_per_s != p.sites[0].uplink_bytes_per_s);
}

TEST_CASE("gateways: the number of machines multiplies the measured rates, and the provenance says so") {
  const platforms::Platform one = platform({}, "eight-regions"),
                            four = platform({"platform.gateways=4"}, "eight-regions");
  CHECK(four.path(0, 1).bandwidth_bytes_per_s == 4 * one.path(0, 1).bandwidth_bytes_per_s);
  CHECK(four.sites[7].uplink_bytes_per_s == 4 * one.sites[7].uplink_bytes_per_s);
  CHECK(four.provenance.back().detail.find("azure:westeurope × 4") != std::string::npos);
  CHECK(four.path(0, 1).machines == 4);
  // A line in one direction leaves the other direction that of the machines.
  const std::string name = one.sites[7].name;
  const platforms::Platform up =
      platform({"platform.gateways=4", "site." + name + ".uplink=20Gbps"}, "eight-regions");
  CHECK(up.sites[7].uplink_bytes_per_s == 2.5e9);
  CHECK(up.sites[7].downlink_bytes_per_s == four.sites[7].downlink_bytes_per_s);
}

TEST_CASE("a [[site]] that is none of the run's sites is named") {
  const auto unused = [](const platforms::Platform& p) {
    return std::any_of(p.provenance.begin(), p.provenance.end(), [](const fomoe::Provenance& one) {
      return one.what == "[[site]]" && one.detail.find("site-9") != std::string::npos;
    });
  };
  CHECK(unused(platform({"platform.preset=consumer", "platform.sites=5", "site.site-9.uplink=1Gbps"})));
  CHECK_FALSE(
      unused(platform({"platform.preset=consumer", "platform.sites=10", "site.site-9.uplink=1Gbps"})));
}

TEST_CASE("gateways: a line keeps its rate, and each site has the machines that the scenario gives it") {
  const Folder folder;
  write(folder / "p.toml", "name = \"p\"\nsource = \"x\"\nrates_of = \"machine\"\npaths_csv = \"" +
                               source_dir() +
                               "/platforms/eight-regions.csv\"\n"
                               "[[site]]\nname = \"frankfurt\"\nuplink = \"10Gbps\"\ndownlink = \"10Gbps\"\n"
                               "[default_path]\nlatency = \"20ms\"\n");
  const auto read = [&](const std::string& sites) {
    std::vector<std::string> set = {"platform.file=" + (folder / "p.toml"), "platform.gateways=4",
                                    "platform.use_sites=frankfurt, aws:us-east-1, azure:eastus"};
    if (!sites.empty()) set.push_back(sites);
    return platform(set, "eight-regions");
  };
  const platforms::Platform p = read("");
  REQUIRE(p.size() == 3);  // the [[site]] hides none of the places of the CSV
  CHECK(p.sites[0].uplink_bytes_per_s == doctest::Approx(10e9 / 8));
  CHECK(p.path(0, 1).machines == 4);
  CHECK(p.path(1, 2).bandwidth_bytes_per_s == doctest::Approx(4 * 4850218610 / 8).epsilon(0.5));
  const platforms::Platform own = read("site.frankfurt.gateways=1");
  CHECK(own.path(0, 1).machines == 1);
  CHECK(own.path(1, 2).machines == 4);
  CHECK(own.path(1, 2) == p.path(1, 2));
  CHECK(read("site.aws:us-east-1.streams=8").path(1, 2).streams == 8);
  CHECK(read("site.frankfurt.bandwidth=40Gbps").sites[0].downlink_bytes_per_s == doctest::Approx(40e9 / 8));
  CHECK(read("path.aws:us-east-1.azure:eastus.bandwidth=1Gbps").path(1, 2).bandwidth_bytes_per_s ==
        doctest::Approx(1e9 / 8));
}

TEST_CASE("a trace in CSV is read and simulated, and a wrong one is refused with its line") {
  const Folder folder;
  const std::string base = "fomoe simulate " + source_dir() +
                           "/tests/ideal/two-sites.toml --set compute.step_time=420ms --set "
                           "platform.trace=" +
                           (folder / "t.csv") + " --output - ";
  const auto answer = [&](const std::string& csv, const std::string& more = "") {
    write(folder / "t.csv", csv);
    return run_in(source_dir(), base + more);
  };
  const std::string header = "time,link,bandwidth,latency\n";
  const double steady = json::parse(answer(header + "0s,uplink of site-0,1Gbps,\n").out)["wall_clock_s"];
  const double slower = json::parse(answer(header + "0s,uplink of site-0,100Mbps,\n").out)["wall_clock_s"];
  CHECK(slower > 1.05 * steady);
  const Ran repeated = answer(header + "0s,uplink of site-0,1Gbps,\n60s,uplink of site-0,100Mbps,\n",
                              "--set platform.trace_period=2min");
  REQUIRE_MESSAGE(repeated.exit_status == 0, repeated.err);
  const auto refused = [&](const std::string& csv, const std::string& message, const std::string& more = "") {
    const Ran ran = answer(csv, more);
    CHECK(ran.exit_status == 2);
    CHECK_MESSAGE(ran.err.find(message) != std::string::npos, ran.err);
  };
  refused("time,link\n", "t.csv:1: header: got \"time,link\"; expected \"time,link,bandwidth,latency\"");
  refused(header, "t.csv:2: trace: got no rows");
  refused(header + "0s,uplink of site-9,1Gbps,\n", "t.csv:2: link: got \"uplink of site-9\"");
  refused(header + "0s,uplink of site-0,1Gb,\n", "t.csv:2: bandwidth: got \"1Gb\"");
  refused(header + "0s,uplink of site-0,,\n", "t.csv:2: row: got neither bandwidth nor latency");
  refused(header + "0s,uplink of site-0,,3ms\n", "t.csv:2: latency: got \"3ms\"; expected an empty cell");
  refused(header + "9s,uplink of site-0,1Gbps,\n3s,uplink of site-0,1Gbps,\n", "t.csv:3: time: got \"3s\"");
  refused(header + "9s,uplink of site-0,1Gbps,\n",
          "platform.trace_period: got a period that is not longer than the trace",
          "--set platform.trace_period=5s");
  // A link that stays down ends the run with a message and exit status 1 instead of an endless wait.
  const Ran dead = answer(header + "1s,uplink of site-0,0bps,\n");
  CHECK(dead.exit_status == 1);
  CHECK_MESSAGE(dead.err.find("uplink of site-0 is permanently down from") != std::string::npos, dead.err);
}

TEST_CASE("a backbone of a platform file is shared in both directions, and its regions must exist") {
  const Folder folder;
  const std::string sites =
      "name = \"p\"\nsource = \"a test\"\n[[site]]\nname = \"a\"\nuplink = \"1Gbps\"\ndownlink = "
      "\"1Gbps\"\nregion = "
      "\"west\"\n[[site]]\nname = \"b\"\nuplink = \"1Gbps\"\ndownlink = \"1Gbps\"\nregion = "
      "\"east\"\ncompute_factor = "
      "1.5\n[default_path]\nlatency = \"1ms\"\n";
  write(folder / "p.toml", sites + "[[backbone]]\nfrom = \"west\"\nto = \"east\"\nbandwidth = \"500Mbps\"\n");
  const platforms::Platform p = platform({"platform.file=" + (folder / "p.toml"), "platform.sites=2"});
  CHECK(p.shared_links.size() == 2);
  CHECK(p.shared_by(0, 1)[0] != p.shared_by(1, 0)[0]);
  CHECK(p.sites[1].compute_factor == 1.5);
  write(folder / "p.toml", sites + "[[backbone]]\nfrom = \"west\"\nto = \"esat\"\nbandwidth = \"500Mbps\"\n");
  CHECK_THROWS_WITH((void)platform({"platform.file=" + (folder / "p.toml")}),
                    doctest::Contains("backbone.to: got \"esat\"; expected the region of a [[site]]"));
}

TEST_CASE("links of a platform file: two offices behind one line share it with all their traffic") {
  const Folder folder;
  const auto site = [](const std::string& name, const std::string& more) {
    return "[[site]]\nname = \"" + name + "\"\nuplink = \"1Gbps\"\ndownlink = \"1Gbps\"\n" + more;
  };
  const std::string both = "out_links = [\"line up\"]\nin_links = [\"line down\"]\n";
  const std::string lines =
      "[[link]]\nname = \"line up\"\nbandwidth = \"800Mbps\"\n"
      "[[link]]\nname = \"line down\"\nbandwidth = \"800Mbps\"\n";
  const std::string head = "name = \"p\"\nsource = \"a test\"\n",
                    latency = "[default_path]\nlatency = \"1ms\"\n";
  std::string sites = "platform.sites=3";
  const auto read = [&](const std::string& text) {
    write(folder / "p.toml", head + text);
    return platform({"platform.file=" + (folder / "p.toml"), sites});
  };
  const platforms::Platform p =
      read(lines + site("a", both) + site("b", both) + site("c", "") + latency +
           "[[link]]\nname = \"transit\"\nbandwidth = \"5Gbps\"\nper_flow = true\n"
           "[[path]]\nfrom = \"a\"\nto = \"c\"\nlatency = \"2ms\"\nlinks = [\"transit\"]\n");
  const auto names = [&](int from, int to) {
    std::string text;
    for (const int link : p.shared_by(from, to))
      text += p.shared_links[static_cast<std::size_t>(link)].name + ";";
    return text;
  };
  CHECK(names(0, 1) == "line up;line down;");
  CHECK(names(0, 2) == "line up;transit;");
  CHECK(names(1, 2) == "line up;");
  CHECK(names(2, 1) == "line down;");
  CHECK(p.shared_links[2].per_flow);
  CHECK(p.route_bytes_per_s(0, 1) == 1e8);
  CHECK(read(lines + site("a", both + "queue = \"50ms\"\n") + site("b", both) + site("c", "") + latency)
            .sites[0]
            .queue_s == 0.05);
  sites = "platform.sites=2";
  CHECK_THROWS_WITH((void)read(lines + site("a", "out_links = [\"lime up\"]\n") + site("b", "") + latency),
                    doctest::Contains("site.out_links: got \"lime up\"; expected names of [[link]]s"));
  CHECK_THROWS_WITH((void)read(lines + lines + site("a", both) + site("b", "") + latency),
                    doctest::Contains("\"line up\" twice"));
  CHECK_THROWS_WITH((void)read(lines + site("a", "") + site("b", "") + latency),
                    doctest::Contains("which no route uses"));
}

TEST_CASE("rates of payload have no headers in them, and packets decide what headers take of links") {
  const costmodel::NetworkModel usual = linux_terms("");
  CHECK(usual.bandwidth_efficiency == 0.949);  // 1448 of 1526 bytes
  CHECK(usual.segment_bytes == 1448);
  CHECK(usual.initial_window_bytes == 14480);
  const costmodel::NetworkModel jumbo = linux_terms("mtu = \"9000B\"\n");
  CHECK(jumbo.bandwidth_efficiency == 0.991);  // 8948 of 9026
  CHECK(jumbo.segment_bytes == 8948);
  CHECK(jumbo.initial_window_bytes == 89480);
  CHECK(linux_terms("rates = \"payload\"\n").bandwidth_efficiency == 1);
  CHECK(linux_terms("rates = \"link\"\n").bandwidth_efficiency == 0.949);
  // What the scenario gives stays.
  const costmodel::NetworkModel given =
      linux_terms("rates = \"payload\"\nmtu = \"9000B\"\n",
                  {"network_model.bandwidth_efficiency=0.9", "network_model.segment_size=536B",
                   "network_model.initial_window=4000B"});
  CHECK(given.bandwidth_efficiency == 0.9);
  CHECK(given.segment_bytes == 536);
  CHECK(given.initial_window_bytes == 4000);
  // The scenario may give it, too.
  CHECK(linux_terms("", {"platform.mtu=9000B"}).segment_bytes == 8948);
  CHECK(linux_terms("mtu = \"4000B\"\n", {"platform.mtu=9000B"}).segment_bytes == 8948);
  CHECK_THROWS_WITH((void)linux_terms("", {"platform.mtu=100kB"}),
                    doctest::Contains("platform.mtu: got \"100kB\"; expected a size from 576 B to 65535 B"));
  CHECK_THROWS_WITH((void)linux_terms("mtu = \"100B\"\n"),
                    doctest::Contains("mtu: got \"100B\"; expected a size from 576 B"));
  CHECK_THROWS_WITH((void)linux_terms("rates = \"wire\"\n"),
                    doctest::Contains("expected one of \"link\", \"payload\""));
}
