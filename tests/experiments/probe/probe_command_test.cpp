// Tests of `fomoe probe` as users start it, with all sites on this machine. A stand-in for iperf3 prints the
// recorded output of a real one. tests/wan/probe_test.cpp runs the real one over emulated links.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "experiments/files/platform_file.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;

namespace {

/// Listens like iperf3, or prints tests/experiments/data/iperf3/four-streams.json.
constexpr const char* kStandIn = R"sh(#!/bin/sh
case " $* " in
  *" --version "*) echo "iperf 3.12 (stand-in)" ;;
  *" -s "*) echo "Server listening on 1 (test #1)"; exec sleep 2 ;;
  *) if [ -e fail-once ]; then rm fail-once; cat "$IPERF3_DATA/refused.json"; exit 1; fi
     if [ -e fail ]; then cat "$IPERF3_DATA/refused.json"; exit 1; fi
     cat "$IPERF3_DATA/four-streams.json" ;;
esac
)sh";

class Sites {
 public:
  Sites() {
    std::filesystem::create_directory(folder_ / "bin");
    write_all(folder_ / "bin/iperf3", kStandIn);
    std::filesystem::permissions(folder_ / "bin/iperf3", std::filesystem::perms::owner_all);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return folder_ / name; }

  /// Runs rank 0 in the foreground and the other ranks in the background. The exit status is rank 0's.
  Ran run(int world, const std::string& options,
          const std::string& others = "fomoe probe --seconds 1") const {
    const std::string port = std::to_string(20000 + (::getpid() * 16 + calls_++) % 10000);
    std::string script = "export PATH=\"$PWD/bin:$PATH\" IPERF3_DATA='" + source_dir() +
                         "/tests/experiments/data/iperf3' MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
                         " WORLD_SIZE=" + std::to_string(world) + "\n";
    for (int rank = 1; rank < world; ++rank) {
      script += "(export RANK=" + std::to_string(rank) + "; " + others + " >rank" + std::to_string(rank) +
                ".out 2>&1; echo $? >rank" + std::to_string(rank) + ".status) &\n";
    }
    script += "RANK=0 fomoe probe " + options + "\nstatus=$?\nwait\nexit $status\n";
    write_all(folder_ / "run.sh", script);
    return run_in(folder_.path(), "timeout 60 sh run.sh");
  }

 private:
  Folder folder_;
  mutable int calls_ = 0;
};

}  // namespace

TEST_CASE("fomoe probe: three sites give a platform file of medians that the reader accepts") {
  const Sites sites;
  const Ran ran = sites.run(3, "--name paris --streams 1,2 --seconds 1 --repeat 2 --output p.toml",
                            "fomoe probe --name site$RANK");
  INFO(ran.err, read_all(sites / "rank1.out"));
  REQUIRE(ran.exit_status == 0);
  CHECK(read_all(sites / "rank1.status") == "0\n");
  const platforms::Platform p = scenario::read_platform_file(sites / "p.toml");
  REQUIRE(p.size() == 3);
  CHECK(p.name == "p");
  CHECK(p.sites[0].name == "paris");
  CHECK(p.sites[2].name == "site2");
  const double one = p.path(0, 1).bandwidth_bytes_per_s;
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      if (from == to) continue;
      CHECK(p.path(from, to).bandwidth_bytes_per_s == one);
      CHECK(p.path(from, to).latency_s < 0.05);  // latency of this machine to itself
      CHECK(p.path(from, to).latency_s > 0);
    }
    // Two transfers at the same time are each as fast as one alone, since the stand-in models no shared link.
    CHECK(p.sites[static_cast<std::size_t>(from)].uplink_bytes_per_s ==
          doctest::Approx(2 * one).epsilon(1e-3));
  }
  for (const Provenance& line : p.provenance) CHECK(line.origin == Origin::measured);
}

TEST_CASE("fomoe probe: a failed transfer is repeated once, and a second failure ends the probe") {
  const Sites sites;
  write_all(sites / "fail-once", "");
  const Ran once = sites.run(2, "--streams 1 --seconds 1 --repeat 1 --output p.toml");
  INFO(once.err);
  CHECK(once.exit_status == 0);
  CHECK(once.err.find("repeating a measurement, because transfer from") != std::string::npos);
  write_all(sites / "fail", "");
  const Ran twice = sites.run(2, "--name paris --streams 1 --seconds 1 --repeat 1 --output q.toml",
                              "fomoe probe --name tokyo");
  CHECK(twice.exit_status == 1);
  CHECK(twice.err.find("fomoe: transfer from paris to tokyo (127.0.0.1): iperf3: ") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(sites / "q.toml"));
  CHECK(read_all(sites / "rank1.status") == "1\n");
  CHECK(read_all(sites / "rank1.out").find("transfer from paris to tokyo") != std::string::npos);
}

TEST_CASE("fomoe probe: a site that is killed or never connects is named, and no file is written") {
  const Sites sites;
  const Ran killed = sites.run(2, "--streams 1 --seconds 1 --repeat 300 --output p.toml",
                               "timeout -s KILL 2 fomoe probe --name tokyo");
  INFO(killed.err);
  CHECK(killed.exit_status == 1);
  CHECK(killed.err.find("tokyo (rank 1, 127.0.0.1) is lost: ") != std::string::npos);
  const Ran missing = sites.run(2, "--wait 1 --output p.toml", "true");
  CHECK(missing.exit_status == 1);
  CHECK(missing.err.find("fomoe: rank 1 did not connect") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(sites / "p.toml"));
}

TEST_CASE("fomoe probe: a site without iperf3 is named at once") {
  const Sites sites;
  const Ran ran = sites.run(2, "--output p.toml", "PATH='" FOMOE_BINARY_DIR "' fomoe probe --name tokyo");
  INFO(ran.err);
  CHECK(ran.exit_status == 1);
  CHECK(ran.err.find("tokyo (rank 1): iperf3 is not on PATH; on Debian and Ubuntu install it with apt-get "
                     "install iperf3") != std::string::npos);
}

TEST_CASE("fomoe probe: mistakes on the command line give exit status 2") {
  const auto refused = [](const std::string& command, const std::string& expected) {
    const Ran ran = run_in(source_dir(), command);
    INFO(ran.err);
    CHECK(ran.exit_status == 2);
    CHECK(ran.err.find(expected) != std::string::npos);
  };
  const std::string site = "RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29555 fomoe probe ";
  refused("fomoe probe --output p.toml",
          "RANK: got nothing; expected this variable in the environment, as torchrun");
  refused(site + "--streams 1,100", "--streams: got \"1,100\"; expected numbers from 1 to 64");
  refused(site + "--streams 4,4", "--streams: got \"4,4\"");
  refused(site + "--seconds 0", "--seconds: got 0; expected 1 to 600; for example --seconds 3");
  refused(site + "--name 'New York'", "--name: got \"New York\"");
  refused(site + "--output p.csv", "--output: got \"p.csv\"");
  refused(site + "p.toml", "got \"p.toml\"; expected only options");
  refused("PATH='" FOMOE_BINARY_DIR
          "' RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29555 fomoe probe",
          "got no iperf3 in it; expected iperf3 at every site; for example apt-get install iperf3");
}
