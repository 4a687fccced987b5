// Tests of `fomoe sweep --plot` and `fomoe compare --plot` through the program.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/text/human.hpp"
#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;
using nlohmann::json;

const std::string kSweep = "sweep tests/ideal/two-sites.toml --engine closed-form ";
const std::string kCompare =
    "compare experiments/scenarios/four-regions.toml --case strategy.method=ddp --case \"\" ";

Ran plotted(const std::string& arguments, const std::string& environment = "") {
  return run_in(source_dir(), environment + " fomoe " + arguments);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("one varied key: a bar for each value, with the wall clock of its row, in place of the JSON") {
  const std::string varied = kSweep + "--vary platform.bandwidth=100Mbps,1Gbps,2.5Gbps";
  const Ran ran = plotted(varied + " --plot");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json rows = json::parse(plotted(varied).out)["rows"];
  const auto lines = lines_of(ran.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "wall clock by platform.bandwidth:  █ compute  ▒ exposed communication");
  const std::vector<std::string> labels = {"100 Mbps  █", "1 Gbps    █", "2.5 Gbps  █"};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(lines[i + 1].starts_with(labels[i]));
    CHECK(lines[i + 1].ends_with("  " + fomoe::commands::human_time(rows[i]["wall_clock_s"].get<double>())));
  }
}

TEST_CASE("two varied keys: a heat map, also beside a file with the rows, and impossible cells") {
  const Folder folder;
  const Ran ran = plotted(
      kSweep + "--vary strategy.expert_overlap=1,3 --vary platform.latency=0ms,50ms --plot --output " +
      (folder / "s.csv"));
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const auto lines = lines_of(ran.out);
  REQUIRE(lines.size() >= 5);
  CHECK(lines[0] == "wall clock by strategy.expert_overlap (rows) and platform.latency (columns)");
  CHECK(lines[1].starts_with("   0 s "));
  CHECK(lines[1].ends_with(" 50 ms"));
  CHECK(lines[2].starts_with("1  "));
  CHECK(lines[3].find("3  ×") == 0);  // there are two sites
  CHECK(ran.out.find("  × impossible\n") != std::string::npos);
  CHECK(lines_of(read_all(folder / "s.csv")).size() == 5);
}

TEST_CASE("a plot of many rows shows evenly spaced values with both ends, and says so") {
  const Ran ran = plotted(
      kSweep +
      "--vary strategy.local_steps=1..1000+1 --vary 'platform.bandwidth=100Mbps..100Gbps*100/decade' --plot");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const auto lines = lines_of(ran.out);
  CHECK(lines[1] == "columns, from left to right: 100 Mbps to 100 Gbps");
  CHECK(lines[2].starts_with("   1  "));
  CHECK(lines[41].starts_with("1000  "));
  CHECK(ran.out.find("shown: 40 of 1000 values of strategy.local_steps\n") != std::string::npos);
  CHECK(ran.out.find("shown: 40 of 301 values of platform.bandwidth\n") != std::string::npos);
}

TEST_CASE("compare: a bar for each case between the table and the sentences, and beside a JSON file") {
  const Ran plain = plotted(kCompare), ran = plotted(kCompare + "--plot");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const std::size_t at = ran.out.find("wall clock:  █ compute  ▒ exposed communication  ░ idle\n");
  REQUIRE(at != std::string::npos);
  CHECK(at < ran.out.find("Fastest: "));
  const std::string bars = ran.out.substr(at, ran.out.find("\n\n", at) + 2 - at);
  CHECK(ran.out.substr(0, at) + ran.out.substr(at + bars.size()) == plain.out);
  CHECK(lines_of(bars)[1].starts_with("ddp "));
  CHECK(lines_of(bars)[2].starts_with("unchanged "));
  const Folder folder;
  const Ran beside = plotted(kCompare + "--plot --output " + (folder / "c.json"));
  CHECK(beside.out + '\n' == bars);
  CHECK(json::parse(read_all(folder / "c.json"))["cases"].size() == 2);
}

TEST_CASE("the width is that of COLUMNS, and 80 if stdout is no terminal or COLUMNS is no number") {
  const auto widest = [](const std::string& environment) {
    std::size_t width = 0;
    for (const std::string& line :
         lines_of(plotted(kSweep + "--vary strategy.local_steps=1,1000 --plot", environment).out))
      width = std::max(width, fomoe::commands::text_width(line));
    return width;
  };
  CHECK(widest("COLUMNS=120") == 120);
  CHECK(widest("COLUMNS=50") == 50);
  CHECK(widest("COLUMNS=") == 80);
  CHECK(widest("COLUMNS=wide") == 80);
}

TEST_CASE("--plot is refused with what it cannot be combined with") {
  const auto refused = [](const std::string& arguments, const std::string& message) {
    const Ran ran = plotted(arguments);
    CHECK(ran.exit_status == 2);
    CHECK(ran.out.empty());
    CHECK_MESSAGE(ran.err == "fomoe: --plot: " + message + '\n', ran.err);
  };
  const std::string beside =
      "got this option with --output -, which writes JSON to stdout; expected one of them on stdout; for "
      "example "
      "--plot --output result.json";
  refused(kSweep + "--vary strategy.local_steps=1,2 --plot --output -", beside);
  refused(kCompare + "--plot --output -", beside);
  refused(kSweep + "--vary strategy.local_steps=1,2 --plot --shard 1/2",
          "got this option with --shard 1/2; expected a whole sweep; for example --plot without --shard");
  refused(
      kSweep +
          "--vary strategy.local_steps=1,2 --vary strategy.expert_overlap=1,2 --vary "
          "platform.latency=0ms,5ms --plot",
      "got 3 keys with several values (strategy.local_steps, strategy.expert_overlap, platform.latency); "
      "expected "
      "one or two; for example --output sweep.json without --plot, and then fomoe report sweep.json --output "
      "report.html");
}
