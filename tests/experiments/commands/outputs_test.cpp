// Tests that no output of a command destroys anything: inputs, other outputs, journals of sweeps and files
// that only have the name of one.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;
namespace fs = std::filesystem;

namespace {

/// A folder with a scenario in JSON, whose name an output may have too, and its profile-free platform.
struct Scenario : Folder {
  Scenario() {
    write_all(*this / "s.json", text);
    fs::create_symlink("s.json", *this / "link.json");
  }
  const std::string text =
      R"({"model": {"preset": "small"}, "workload": {"tokens": 1e7, "global_batch_sequences": 16},
"strategy": {"method": "diloco", "local_steps": 4}, "compute": {"step_time": "420ms"},
"platform": {"sites": 2, "bandwidth": "1Gbps", "latency": "25ms", "trace": "trace.csv"}})";
};

const std::string kTrace = "time,link,bandwidth,latency\n1s,uplink of site-0,500Mbps,\n";

}  // namespace

TEST_CASE("an output never replaces the scenario, a file that it names, or another output") {
  const Scenario folder;
  write_all(folder / "trace.csv", kTrace);
  for (const std::string options :
       {"--output s.json", "--output link.json", "--trace s.json", "--links trace.csv",
        "--write-plan ./s.json", "--output a.json --trace a.json", "--links b.csv --output b.csv"}) {
    CAPTURE(options);
    const Ran ran = run_in(folder.path(), "fomoe simulate s.json " + options);
    CHECK(ran.exit_status == 2);
    CHECK(has(ran.err, "expected a file of its own"));
    CHECK(read_all(folder / "s.json") == folder.text);
    CHECK(read_all(folder / "trace.csv") == kTrace);
    CHECK_FALSE(fs::exists(folder / "a.json"));
    CHECK_FALSE(fs::exists(folder / "b.csv"));
  }
  for (const std::string command :
       {"sweep s.json --vary strategy.local_steps=2,4 --output s.json", "report s.json --output s.json",
        "plan s.json --output s.json", "cost s.json --output link.json", "solve s.json --output s.json",
        "compare s.json --output s.json"}) {
    CAPTURE(command);
    CHECK(run_in(folder.path(), "fomoe " + command).exit_status == 2);
    CHECK(read_all(folder / "s.json") == folder.text);
  }
}

TEST_CASE("a sweep neither follows OUT.partial through a link nor deletes what is no journal") {
  const Scenario folder;
  write_all(folder / "trace.csv", kTrace);
  const std::string sweep = "fomoe sweep s.json --vary strategy.local_steps=2,4 --output rows.csv";
  write_all(folder / "precious.txt", "precious");
  fs::create_symlink("precious.txt", folder / "rows.csv.partial");
  for (const char* resume : {"", " --resume"}) {
    const Ran ran = run_in(folder.path(), sweep + resume);
    CHECK(ran.exit_status == 2);
    CHECK(has(ran.err, "rows.csv.partial is no journal of a sweep"));
  }
  CHECK(read_all(folder / "precious.txt") == "precious");
  fs::remove(folder / "rows.csv.partial");
  write_all(folder / "rows.csv.partial", "precious");
  CHECK(run_in(folder.path(), sweep).exit_status == 2);
  CHECK(read_all(folder / "rows.csv.partial") == "precious");
  fs::remove(folder / "rows.csv.partial");
  CHECK(run_in(folder.path(), sweep).exit_status == 0);
  CHECK_FALSE(fs::exists(folder / "rows.csv.partial"));
}

TEST_CASE("an interrupted sweep that is repeated without --resume says what it would discard") {
  const Scenario folder;
  write_all(folder / "trace.csv", kTrace);
  const std::string sweep =
      "fomoe sweep s.json --vary strategy.local_steps=1..400+1 --jobs 1 --output rows.csv";
  (void)run_in(folder.path(),
               "sh -c '" + sweep +
                   " & p=$!; while kill -0 $p && [ $(stat -c %s rows.csv.partial || echo 0) -lt "
                   "9000 ]; do sleep 0.01; done; kill -9 $p; wait $p' 2>/dev/null");
  REQUIRE(fs::exists(folder / "rows.csv.partial"));
  const std::string journal = read_all(folder / "rows.csv.partial");
  const Ran again = run_in(folder.path(), sweep);
  CHECK(again.exit_status == 2);
  CHECK(has(again.err,
            " of 400 rows of this sweep, which was interrupted and would begin anew; expected "
            "--resume to continue"));
  const Ran other = run_in(folder.path(), sweep + " --set workload.tokens=2e7");
  CHECK(other.exit_status == 2);
  CHECK(has(other.err, "the rows of another interrupted sweep, which would be discarded"));
  CHECK(read_all(folder / "rows.csv.partial") == journal);
  CHECK(run_in(folder.path(), sweep + " --resume").exit_status == 0);
}

TEST_CASE("files that a scenario names are regular, and a scenario may come through a pipe") {
  const Scenario folder;
  REQUIRE(mkfifo((folder / "trace.csv").c_str(), 0600) == 0);
  Ran ran = run_in(folder.path(), "timeout 20 fomoe simulate s.json");
  CHECK(ran.exit_status == 2);
  CHECK(has(ran.err, "s.json:3: platform.trace: got \"trace.csv\" (a pipe); expected a regular file"));
  ran = run_in(folder.path(), "timeout 20 fomoe simulate s.json --set platform.trace=/dev/zero");
  CHECK(ran.exit_status == 2);
  CHECK(has(ran.err, "(a device)"));
  ran = run_in(folder.path(), "timeout 20 fomoe simulate s.json --set platform.trace=/dev/stdin </dev/zero");
  CHECK(ran.exit_status == 2);
  for (const char* file : {"trace.csv", "/dev/zero", "/proc/self/mem"}) {
    CAPTURE(file);
    ran = run_in(folder.path(), std::string("timeout 20 fomoe simulate ") + file);
    CHECK(ran.exit_status == 2);
    CHECK(has(ran.err, std::string(file) + ":1: file: got a"));
  }
  ran = run_in(folder.path(), "timeout 20 fomoe simulate - </");
  CHECK(ran.exit_status == 2);
  CHECK(has(ran.err, "stdin:1: file: got an error after 0 bytes were read (Is a directory)"));
  const std::string open = "--unset platform.trace --output -";
  const Ran plain = run_in(folder.path(), "fomoe simulate s.json " + open);
  CHECK(plain.exit_status == 0);
  for (const std::string way : {"cat s.json | fomoe simulate /dev/stdin ",
                                "fomoe simulate /dev/stdin <s.json ", "cat s.json | fomoe simulate - "}) {
    CAPTURE(way);
    ran = run_in(folder.path(), "sh -c '" + way + open + "'");
    CHECK_MESSAGE(ran.exit_status == 0, ran.err);
    CHECK(ran.out == plain.out);
  }
  ran = run_in(folder.path(), "bash -c 'fomoe simulate <(cat s.json) " + open + "'");
  CHECK(ran.out == plain.out);
}
