// Tests the import of SimGrid's XML platforms: latencies, rates, and the provenance of links that cannot be
// represented.
#include "sim/xml/xml_platform.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "platforms/support/input_error.hpp"
#include "tests/sim/transfers.hpp"

namespace {

using namespace fomoe;

platforms::Platform read(const std::string& name) {
  return sim::read_xml_platform(FOMOE_SOURCE_DIR "/tests/sim/platforms/" + name);
}

int site(const platforms::Platform& platform, const std::string& name) {
  for (int i = 0; i < platform.size(); ++i) {
    if (platform.sites[static_cast<std::size_t>(i)].name == name) return i;
  }
  FAIL("no site " << name);
  return 0;
}

void check_path(const platforms::Platform& platform, const char* from, const char* to, double latency_s,
                double bytes_per_s) {
  CAPTURE(from);
  CAPTURE(to);
  const int a = site(platform, from), b = site(platform, to);
  CHECK(platform.path(a, b).latency_s == doctest::Approx(latency_s).epsilon(1e-12));
  CHECK(platform.route_bytes_per_s(a, b) == doctest::Approx(bytes_per_s).epsilon(1e-12));
}

// The names of the shared links between two sites.
std::vector<std::string> shared(const platforms::Platform& platform, int from, int to) {
  std::vector<std::string> names;
  for (const int link : platform.shared_by(from, to))
    names.push_back(platform.shared_links[static_cast<std::size_t>(link)].name);
  return names;
}

double exchange_s(const platforms::Platform& platform, std::vector<tests::Exchange> exchanges) {
  const costmodel::Plan plan = tests::transfer_only(platform.size(), costmodel::Pattern::point_to_point,
                                                    costmodel::Collective::ring, std::move(exchanges));
  return sim::simulate(plan, {0}, platform, [](auto&&...) { return 0.0; }).round_end_s[0];
}

void check_site(const platforms::Platform& platform, const char* name, double up, double down) {
  CAPTURE(name);
  const platforms::Site& own = platform.sites[static_cast<std::size_t>(site(platform, name))];
  CHECK(own.uplink_bytes_per_s == doctest::Approx(up).epsilon(1e-12));
  CHECK(own.downlink_bytes_per_s == doctest::Approx(down).epsilon(1e-12));
}

std::string refusal(const std::string& text) {
  const std::string path = (std::filesystem::temp_directory_path() / "fomoe-wrong-platform.xml").string();
  std::ofstream(path) << text;
  std::string message;
  try {
    (void)sim::read_xml_platform(path);
  } catch (const InputError& error) {
    message = error.what();
  }
  std::filesystem::remove(path);
  return message;
}

}  // namespace

TEST_CASE("asymmetric routes: each direction its own links; a half-duplex access link; a fat pipe") {
  const platforms::Platform platform = read("asymmetric.xml");
  REQUIRE(platform.size() == 3);
  CHECK(platform.name == "asymmetric.xml");
  check_path(platform, "paris", "tokyo", 0.001 + 0.100 + 0.002, 100e6);
  check_path(platform, "tokyo", "paris", 0.002 + 0.140 + 0.001, 30e6);
  check_path(platform, "paris", "quito", 0.001 + 0.050 + 0.003, 60e6);
  check_path(platform, "quito", "tokyo", 0.003 + 0.050 + 0.002, 60e6);
  check_path(platform, "tokyo", "quito", 0.002 + 0.050 + 0.003, 50e6);
  check_site(platform, "paris", 100e6, 400e6);
  check_site(platform, "tokyo", 50e6, 200e6);
  check_site(platform, "quito", 80e6, 80e6);  // by its access link, which both directions share
  const int paris = site(platform, "paris"), tokyo = site(platform, "tokyo"), quito = site(platform, "quito");
  CHECK(shared(platform, paris, tokyo).empty());
  CHECK(shared(platform, paris, quito) == std::vector<std::string>{"south", "quito-access"});
  for (const platforms::SharedLink& link : platform.shared_links)
    CHECK(link.per_flow == (link.name == "south"));
  // 6 MB each way between paris and quito: the access link of 80 MB/s carries both.
  const double one_s = exchange_s(platform, {tests::exchange_of({paris, quito}, 1'500'000)});
  const double both_s = exchange_s(platform, {tests::exchange_of({paris, quito}, 1'500'000),
                                              tests::exchange_of({quito, paris}, 1'500'000)});
  CHECK(one_s == doctest::Approx(0.054 + 6e6 / 60e6).epsilon(1e-6));
  CHECK(both_s == doctest::Approx(0.054 + 12e6 / 80e6).epsilon(1e-6));
  // Two flows through the fat pipe have 60 MB/s each, as far as the access link allows.
  CHECK(exchange_s(platform, {tests::exchange_of({paris, tokyo}, 1'500'000)}) ==
        doctest::Approx(0.103 + 6e6 / 100e6).epsilon(1e-6));
}

TEST_CASE("zones: routes through gateways, a sea cable that four paths share") {
  const platforms::Platform platform = read("zones.xml");
  REQUIRE(platform.size() == 4);
  check_path(platform, "eu-0", "eu-1", 0.001 + 0.001, 125e6);
  check_path(platform, "eu-0", "as-1", 0.001 + 0.090 + 0.002, 40e6);
  check_path(platform, "as-1", "eu-1", 0.002 + 0.090 + 0.001, 40e6);
  check_site(platform, "eu-0", 125e6, 125e6);
  check_site(platform, "as-1", 250e6, 250e6);
  REQUIRE(platform.shared_links.size() == 2);
  const auto between = [&](const char* from, const char* to) {
    return shared(platform, site(platform, from), site(platform, to));
  };
  CHECK(between("eu-0", "eu-1").empty());
  CHECK(between("eu-0", "as-1") == std::vector<std::string>{"sea_UP"});
  CHECK(between("eu-1", "as-0") == std::vector<std::string>{"sea_UP"});
  CHECK(between("as-0", "eu-1") == std::vector<std::string>{"sea_DOWN"});
  for (const platforms::SharedLink& sea : platform.shared_links) CHECK(sea.bandwidth_bytes_per_s == 40e6);
}

TEST_CASE("two hosts on one line, which both directions share") {
  const platforms::Platform platform = read("two-hosts.xml");
  check_path(platform, "a", "b", 0.025, 125e6);
  check_path(platform, "b", "a", 0.025, 125e6);
  check_site(platform, "a", 125e6, 125e6);
  CHECK(exchange_s(platform,
                   {tests::exchange_of({0, 1}, 25'000'000), tests::exchange_of({1, 0}, 25'000'000)}) ==
        doctest::Approx(0.025 + 200e6 / 125e6).epsilon(1e-6));
}

TEST_CASE("a site without a link of its own is limited by its paths, and by what its routes have in common") {
  // 0 → 1 and 0 → 2 have separate links. Hosts 1 and 2 reach each other and host 0 through one common link.
  const std::vector<sim::XmlLink> links = {{"a", 10}, {"b", 20}, {"common", 5}};
  std::vector<sim::XmlRoute> routes(9);
  routes[1] = {{0}, 0.1};
  routes[2] = {{1}, 0.2};
  for (const std::size_t pair : {3U, 5U, 6U, 7U}) routes[pair] = {{2}, 0.3};
  const platforms::Platform platform = sim::platform_of_routes("p", {"x", "y", "z"}, links, routes);
  check_site(platform, "x", 10 + 20, 5);  // both routes to x have the common link
  check_site(platform, "y", 5, 10 + 5);
  REQUIRE(platform.shared_links.size() == 1);
  CHECK(shared(platform, 0, 1).empty());
  for (const auto& [from, to] : {std::pair{1, 0}, {1, 2}, {2, 0}, {2, 1}})
    CHECK(shared(platform, from, to) == std::vector<std::string>{"common"});
}

TEST_CASE("a path may share several links with others, and competes for each of them") {
  // y and z send through both links, and x through the fast one only.
  const std::vector<sim::XmlLink> links = {{"fast", 50}, {"slow", 5}};
  std::vector<sim::XmlRoute> routes(9);
  for (const std::size_t pair : {1U, 2U}) routes[pair] = {{0}, 0.1};
  for (const std::size_t pair : {3U, 5U, 6U, 7U}) routes[pair] = {{0, 1}, 0.1};
  const platforms::Platform platform = sim::platform_of_routes("p", {"x", "y", "z"}, links, routes);
  REQUIRE(platform.shared_links.size() == 2);
  CHECK(shared(platform, 0, 1) == std::vector<std::string>{"fast"});
  CHECK(shared(platform, 1, 0) == std::vector<std::string>{"fast", "slow"});
  // 0 → 1 has what 1 → 2 and 2 → 0 leave of the fast link: 50 − 5 B/s.
  const double end_s = exchange_s(platform, {tests::exchange_of({0, 1}, 1125), tests::exchange_of({1, 2}, 62),
                                             tests::exchange_of({2, 0}, 63)});
  CHECK(end_s == doctest::Approx(0.1 + 100).epsilon(0.01));
}

TEST_CASE("wrong platforms name the file and SimGrid's reason, in one line") {
  const std::string head =
      "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<platform version=\"4.1\"><zone id=\"w\" routing=\"Full\">";
  const std::string tail = "</zone></platform>\n";
  const std::string a = "<host id=\"a\" speed=\"1Gf\"/>", b = "<host id=\"b\" speed=\"1Gf\"/>";
  const auto link = [](const std::string& attribute) {
    return "<link id=\"l\" bandwidth=\"1MBps\" latency=\"1ms\" " + attribute +
           "/><route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>";
  };
  struct Wrong {
    std::string text, message;
  };
  const std::vector<Wrong> cases = {
      {"no xml at all", "a file that SimGrid cannot read ("},
      {head + a + "<hots id=\"b\"/>" + tail, "a file that SimGrid cannot read ("},
      {head + a + tail, "1 host; expected from 2 to 1024 hosts"},
      {head + tail, "0 hosts; expected from 2 to 1024 hosts"},
      {head + a + b + tail, "no link from "},
      {head + a + b +
           "<link id=\"l\" bandwidth=\"5\" latency=\"1ms\"/><route src=\"a\" dst=\"c\"><link_ctn "
           "id=\"l\"/></route>" +
           tail,
       "a file that SimGrid cannot read ("},
      {head + a + b + "<link id=\"l\" bandwidth=\"fast\" latency=\"1ms\"/>" + tail,
       "a file that SimGrid cannot read ("},
      {head + a + b + link("sharing_policy=\"WIFI\"") + tail, "a file that SimGrid cannot read (link l is a"},
  };
  for (const Wrong& wrong : cases) {
    CAPTURE(wrong.text);
    const std::string message = refusal(wrong.text);
    CAPTURE(message);
    CHECK(message.find("fomoe-wrong-platform.xml: got " + wrong.message) != std::string::npos);
    CHECK(message.find("; for example ") != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  }
  CHECK_THROWS_AS((void)sim::read_xml_platform("/nowhere/x.xml"), InputError);

  // Changes over time are refused with their line, but not in comments.
  const std::string before = head + "\n<!--\n state_file=\"old.txt\" -->" + a + b + "\n";
  CHECK(refusal(before + link("") + tail).empty());
  for (const std::string name : {"bandwidth_file", "latency_file", "state_file"})
    CHECK(refusal(before + link(name + " = \"x.txt\"") + tail).find(":6: got " + name + ",") !=
          std::string::npos);
  CHECK(refusal(before + link("state_file" + std::string(2'000'000, ' ') + "=\"x.txt\"") + tail)
            .find(":6: got state_file,") != std::string::npos);
  CHECK(refusal(before + "<trace id=\"t\">0 1</trace>" + link("") + tail).find(":6: got trace,") !=
        std::string::npos);
}

TEST_CASE("settings of SimGrid's network model in the file are named, since they are not used") {
  const auto named = [](const std::string& file) {
    std::string text;
    for (const auto& one : read(file).provenance) text += one.detail + '\n';
    return text;
  };
  CHECK(named("two-hosts.xml").find("settings of SimGrid") == std::string::npos);
  const std::string text = named("config.xml");
  CHECK_MESSAGE(
      text.find("(network/bandwidth-factor = 0.92, network/TCP-gamma = 4194304)") != std::string::npos, text);
  check_path(read("config.xml"), "a", "b", 0.025, 125e6);
}

TEST_CASE("sites that a scenario uses are chosen from an XML with other hosts, which then need no routes") {
  const auto read_used = [](const std::vector<std::string>& names) {
    return sim::read_xml_platform(FOMOE_SOURCE_DIR "/tests/sim/platforms/asymmetric.xml", {names, {}});
  };
  const platforms::Platform all = read("asymmetric.xml");
  REQUIRE(all.size() > 2);
  const std::vector<std::string> two = {all.sites[0].name, all.sites[2].name};
  const platforms::Platform some = read_used(two);
  REQUIRE(some.size() == 2);
  CHECK(some.sites[1].name == all.sites[2].name);
  CHECK(some.path(0, 1).latency_s == all.path(0, 2).latency_s);
  // A name that no host has: the names of all hosts, for the message.
  CHECK(read_used({"nowhere"}).size() == all.size());
}

TEST_CASE("a link that one route has twice is shared with itself") {
  const platforms::Platform platform = read("twice.xml");
  REQUIRE(platform.size() == 2);
  CHECK(platform.shared_by(0, 1).size() == 2);
  CHECK(platform.shared_by(1, 0).empty());
  CHECK(platform.route_bytes_per_s(1, 0) == 125e6);
}
