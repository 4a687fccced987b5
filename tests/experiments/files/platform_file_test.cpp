// Tests of platform files: the eight measured regions by hand, the precedence of paths, and every mistake
// with its line.
#include "experiments/files/platform_file.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "experiments/scenario/scenario_reader.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using scenario::read_platform_file;

namespace {

const std::string kHeader =
    "src_region,dst_region,throughput_median_bits_per_s,throughput_samples,rtt_median_ms\n";
const std::string kPlatformTop = "name = \"p\"\nsource = \"us\"\n";
const std::string kTwoSiteTables =
    "[[site]]\nname = \"a\"\nuplink = \"1Gbps\"\ndownlink = \"1Gbps\"\n[[site]]\nname = \"b\"\nuplink = "
    "\"1Gbps\"\ndownlink = \"1Gbps\"\n";

platforms::Platform read_platform(const std::string& toml, const std::string& csv = "") {
  const Folder folder;
  write_all(folder / "p.toml", toml);
  if (!csv.empty()) write_all(folder / "m.csv", csv);
  return read_platform_file(folder / "p.toml");
}

std::string platform_complaint(const std::string& toml, const std::string& csv = "") {
  const Folder folder;
  write_all(folder / "p.toml", toml);
  if (!csv.empty()) write_all(folder / "m.csv", csv);
  try {
    (void)read_platform_file(folder / "p.toml");
  } catch (const FileError& error) {
    return std::string(error.what()).substr(folder.path().size() + 1);
  }
  return "accepted";
}

}  // namespace

TEST_CASE("eight regions: bits ÷ 8, round trip ÷ 2, checked by hand against rows of the CSV") {
  const platforms::Platform p = read_platform_file(source_dir() + "/platforms/eight-regions.toml");
  REQUIRE(p.size() == 8);
  const auto index = [&](const std::string& name) {
    for (int i = 0; i < p.size(); ++i) {
      if (p.sites[static_cast<std::size_t>(i)].name == name) return i;
    }
    return -1;
  };
  const int europe = index("azure:westeurope"), east = index("azure:eastus"), aws = index("aws:us-east-1"),
            brazil = index("gcp:southamerica-east1-a"), india = index("gcp:asia-south1-a");
  // azure:westeurope,azure:eastus,16479919803,1,80.33
  CHECK(p.path(europe, east).bandwidth_bytes_per_s == 2059989975.375);
  CHECK(p.path(europe, east).latency_s == doctest::Approx(0.040165).epsilon(1e-12));
  // aws:us-east-1,azure:eastus,4850218610,1,1.9 and, in the other direction with other values,
  // azure:eastus,aws:us-east-1,9617975176,1,1.86
  CHECK(p.path(aws, east).bandwidth_bytes_per_s == 606277326.25);
  CHECK(p.path(aws, east).latency_s == doctest::Approx(0.00095).epsilon(1e-12));
  CHECK(p.path(east, aws).bandwidth_bytes_per_s == 1202246897.0);
  // gcp:southamerica-east1-a,gcp:asia-south1-a,7005328500,4,326.88
  CHECK(p.path(brazil, india).bandwidth_bytes_per_s == 875666062.5);
  CHECK(p.path(brazil, india).latency_s == doctest::Approx(0.16344).epsilon(1e-12));
}

TEST_CASE("eight regions: a site's links have the largest rates out of it and into it") {
  const platforms::Platform p = read_platform_file(source_dir() + "/platforms/eight-regions.toml");
  CHECK(p.sites[0].name == "azure:westeurope");
  CHECK(p.sites[0].uplink_bytes_per_s == 16479919803.0 / 8);    // to azure:eastus
  CHECK(p.sites[0].downlink_bytes_per_s == 16028729439.0 / 8);  // from azure:eastus
  CHECK(p.sites[7].name == "aws:us-east-1");
  CHECK(p.sites[7].uplink_bytes_per_s == 5381143700.0 / 8);    // to gcp:asia-south1-a
  CHECK(p.sites[7].downlink_bytes_per_s == 9617975176.0 / 8);  // from azure:eastus
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      if (i == j) continue;
      CHECK(p.path(i, j).bandwidth_bytes_per_s <= p.sites[static_cast<std::size_t>(i)].uplink_bytes_per_s);
      CHECK(p.path(i, j).bandwidth_bytes_per_s <= p.sites[static_cast<std::size_t>(j)].downlink_bytes_per_s);
    }
  }
}

TEST_CASE("eight regions: rates and latencies are measured, and the sites' links are computed from them") {
  const platforms::Platform p = read_platform_file(source_dir() + "/platforms/eight-regions.toml");
  REQUIRE(p.provenance.size() == 3);
  CHECK(p.provenance[0].what == "path rates");
  CHECK(p.provenance[0].origin == Origin::measured);
  CHECK(p.provenance[0].detail.find("iperf3, 64 connections for 5 s") != std::string::npos);
  CHECK(p.provenance[1].what == "path latencies");
  CHECK(p.provenance[1].origin == Origin::measured);
  CHECK(p.provenance[2].what == "uplinks and downlinks");
  CHECK(p.provenance[2].origin == Origin::computed);
}

TEST_CASE("a scenario may take the first sites of a file") {
  const costmodel::Scenario s =
      scenario::read_scenario(source_dir() + "/experiments/scenarios/eight-regions.toml",
                              {{"compute.step_time=420ms", "platform.sites=4"}, {}, true});
  REQUIRE(s.sites() == 4);
  CHECK(s.platform.sites[3].name == "azure:japaneast");
  CHECK(s.platform.path(3, 0).bandwidth_bytes_per_s == 12714135953.0 / 8);
  // A site's links are those of the whole platform, whichever sites take part.
  CHECK(s.platform.sites[0].uplink_bytes_per_s == 16479919803.0 / 8);
}

TEST_CASE("a [[path]] wins over the CSV, and the CSV wins over [default_path]") {
  const std::string csv = kHeader + "a,b,8000,1,20\nb,a,16000,1,20\n";
  const std::string three = "paths_csv = \"m.csv\"\n" + kTwoSiteTables +
                            "[[site]]\nname = \"c\"\nuplink = \"1Gbps\"\ndownlink = \"1Gbps\"\n"
                            "[default_path]\nlatency = \"50ms\"\n"
                            "[[path]]\nfrom = \"b\"\nto = \"a\"\nlatency = \"7ms\"\n"
                            "[[path]]\nfrom = \"c\"\nto = \"a\"\nlatency = \"1ms\"\nbandwidth = \"8kbps\"\n";
  const platforms::Platform p = read_platform(kPlatformTop + three, csv);
  CHECK(p.path(0, 1).bandwidth_bytes_per_s == 1000);
  CHECK(p.path(0, 1).latency_s == 0.01);
  CHECK(p.path(1, 0).bandwidth_bytes_per_s == 2000);  // from the CSV, since [[path]] gave only the latency
  CHECK(p.path(1, 0).latency_s == 0.007);
  CHECK(p.path(2, 0).bandwidth_bytes_per_s == 1000);
  CHECK(std::isinf(p.path(0, 2).bandwidth_bytes_per_s));
  CHECK(p.path(0, 2).latency_s == 0.05);
}

TEST_CASE("wrong platform files: the message has the line and the remedy") {
  const std::string paths =
      "[[path]]\nfrom = \"a\"\nto = \"b\"\nlatency = \"1ms\"\n[[path]]\nfrom = \"b\"\nto = \"a\"\nlatency = "
      "\"1ms\"\n";
  CHECK(platform_complaint(kPlatformTop + kTwoSiteTables + paths) == "accepted");
  CHECK(platform_complaint(kPlatformTop + kTwoSiteTables + paths.substr(0, paths.find("[[path]]", 1))) ==
        "p.toml:1: path: got no path from \"b\" to \"a\"; expected every ordered pair of sites in paths_csv, "
        "a [[path]] or [default_path], or sites in platform.use_sites that have paths; "
        "for example [default_path] with latency = \"25ms\"");
  CHECK(platform_complaint(kPlatformTop) ==
        "p.toml:1: site: got no site; expected at least one [[site]], or paths_csv; for example [[site]]");
  CHECK(platform_complaint("name = \"p\"\n" + kTwoSiteTables + paths) ==
        "p.toml:1: source: got nothing; expected a string in quotes; for example source = \"iperf3 between "
        "our sites, 2025-03-01\"");
  CHECK(platform_complaint(kPlatformTop + kTwoSiteTables + paths +
                           "[[path]]\nfrom = \"a\"\nto = \"b\"\nlatency = \"1ms\"\n") ==
        "p.toml:21: path.to: got the path from a to b twice; expected each path once; for example to = "
        "\"tokyo\"");
  CHECK(platform_complaint(kPlatformTop + kTwoSiteTables +
                           "[[path]]\nfrom = \"a\"\nto = \"bb\"\nlatency = \"1ms\"\n") ==
        "p.toml:13: path.to: got \"bb\"; expected the name of a site: \"a\", \"b\"; for example to = "
        "\"tokyo\"; did you mean \"b\"?");
  CHECK(platform_complaint(kPlatformTop + kTwoSiteTables +
                           "[[path]]\nfrom = \"a\"\nto = \"a\"\nlatency = \"1ms\"\n") ==
        "p.toml:13: path.to: got the sending site itself; expected another site; for example to = \"tokyo\"");
  CHECK(platform_complaint(kPlatformTop + kTwoSiteTables + "latncy = \"1ms\"\n") ==
        "p.toml:11: site.latncy: got an unknown key; expected one of name, uplink, downlink, region, "
        "rates_of, compute_factor, queue, out_links, in_links; for example "
        "name = \"paris\"");
  CHECK(platform_complaint(kPlatformTop + "[site]\nname = \"a\"\n") ==
        "p.toml:3: site: got a table; expected a list of tables; for example [[site]]");
  CHECK(platform_complaint(kPlatformTop + "[[site]]\nname = \"a\"\n")
            .starts_with("p.toml:3: site.uplink: got nothing; expected a data rate"));
  CHECK(platform_complaint(kPlatformTop + "[[site]]\nname = \"a\"\nuplink = \"1Gbps\"\ndownlink = \"5ms\"\n")
            .starts_with("p.toml:6: site.downlink: got \"5ms\" (a time); expected a data rate"));
  CHECK(platform_complaint(kPlatformTop + "paths_csv = \"absent.csv\"\n" + kTwoSiteTables)
            .find("absent.csv:1: paths_csv: got no readable file") == 0);
}

TEST_CASE("wrong CSV files: the message has the line and the column") {
  const std::string toml = kPlatformTop + "paths_csv = \"m.csv\"\n" + kTwoSiteTables;
  const std::string good = "a,b,8000,1,20\nb,a,16000,1,20\n";
  const std::string row = "; for example aws:us-east-1,azure:eastus,4850218610,1,1.9";
  CHECK(platform_complaint(toml, kHeader + good) == "accepted");
  CHECK(platform_complaint(toml, "src,dst\n" + good)
            .starts_with("m.csv:1: header: got \"src,dst\"; expected \"src_region,"));
  CHECK(platform_complaint(toml, kHeader + "a,b,8000,1\n") ==
        "m.csv:2: row: got 4 cells; expected 5 cells" + row);
  CHECK(platform_complaint(toml, kHeader + good + "b,a,16000,1,20\n") ==
        "m.csv:4: src_region, dst_region: got the path from b to a twice; expected each pair once" + row);
  CHECK(platform_complaint(toml, kHeader + "a,b,fast,1,20\n") ==
        "m.csv:2: throughput_median_bits_per_s: got \"fast\"; expected a number above zero; for example "
        "4850218610");
  CHECK(platform_complaint(toml, kHeader + "a,b,8000,1,20\nb,a,8000,1,\n") ==
        "m.csv:3: rtt_median_ms: got \"\"; expected a number above zero; for example 1.9");
  CHECK(platform_complaint(toml, kHeader + "a,b,8000,1,-20\n") ==
        "m.csv:2: rtt_median_ms: got \"-20\"; expected a number above zero; for example 1.9");
  CHECK(platform_complaint(toml, kHeader + "a,b,nan,1,20\n") ==
        "m.csv:2: throughput_median_bits_per_s: got \"nan\"; expected a number above zero; for example "
        "4850218610");
}

TEST_CASE("a line in out_links and in_links is crossed twice between its own sites, and is named") {
  const std::string toml = kPlatformTop + "[[link]]\nname = \"line\"\nbandwidth = \"1Gbps\"\n" +
                           "[[site]]\nname = \"a\"\nuplink = \"1Gbps\"\ndownlink = \"1Gbps\"\nout_links = "
                           "[\"line\"]\nin_links = [\"line\"]\n"
                           "[[site]]\nname = \"b\"\nuplink = \"1Gbps\"\ndownlink = \"1Gbps\"\nout_links = "
                           "[\"line\"]\nin_links = [\"line\"]\n"
                           "[[site]]\nname = \"c\"\nuplink = \"1Gbps\"\ndownlink = \"1Gbps\"\n"
                           "[default_path]\nlatency = \"25ms\"\n";
  const platforms::Platform p = read_platform(toml);
  CHECK(p.shared_by(0, 1).size() == 2);
  CHECK(p.shared_by(0, 2).size() == 1);
  CHECK(p.shared_by(2, 1).size() == 1);
  bool named = false;
  for (const Provenance& one : p.provenance)
    named = named || (one.what == "line" && one.detail.find("cross it twice") != std::string::npos);
  CHECK(named);
}

TEST_CASE("a [[site]] beside paths_csv hides no place of it, and sites that are not used need no paths") {
  const std::string csv = kHeader + "x,y,1e9,1,10\ny,x,1e9,1,10\n";
  const std::string toml = kPlatformTop +
                           "paths_csv = \"m.csv\"\n[[site]]\nname = \"own\"\nuplink = \"1Gbps\"\n"
                           "downlink = \"1Gbps\"\n";
  CHECK(platform_complaint(toml, csv).find("no path from \"own\" to \"x\"") != std::string::npos);
  CHECK(read_platform(toml + "[default_path]\nlatency = \"5ms\"\n", csv).size() == 3);
  const Folder folder;
  write_all(folder / "p.toml", toml);
  write_all(folder / "m.csv", "\xEF\xBB\xBF" + csv);  // as a spreadsheet writes it
  CHECK(read_platform_file(folder / "p.toml", {{"x", "y"}, {}}).size() == 3);
  CHECK_THROWS_AS((void)read_platform_file(folder / "p.toml", {{"own", "x"}, {}}), FileError);
}

TEST_CASE("files of other kinds that are given as a platform are named, with what is read") {
  const Folder folder;
  const auto said = [&](const std::string& name, const std::string& text) {
    write_all(folder / name, text);
    const Ran ran = run_in(
        folder.path(), "fomoe simulate " + source_dir() +
                           "/experiments/scenarios/two-sites.toml --set platform.file=" + (folder / name));
    CHECK(ran.exit_status == 2);
    CHECK_MESSAGE(
        ran.err.find("a platform file in TOML, a SimGrid platform with the ending .xml") != std::string::npos,
        ran.err);
    return ran.err;
  };
  CHECK(said("net.gml", "graph [\n node [ id 0 ]\n]\n").find("got a graph in GML") != std::string::npos);
  CHECK(said("net.graphml", "<?xml version=\"1.0\"?><graphml></graphml>").find("got a graph in GraphML") !=
        std::string::npos);
  CHECK(said("delay.csv", "delay,Oregon,Virginia\nOregon,0,67\n").find("got a table (CSV)") !=
        std::string::npos);
  CHECK(said("ping.txt", "PING 10.0.0.2\nrtt min/avg/max/mdev = 66/67/69/1 ms\n")
            .find("got the output of ping") != std::string::npos);
}
