// Tests runs that SIGTERM stops, and sites that wait for each other.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

namespace {

// 12 rounds at two sites, long enough to be stopped in the middle of them.
const std::vector<std::string> kRounds = {"platform.sites=2", "workload.tokens=786432"};
constexpr int kStopped = 128 + SIGTERM;

Process site(int rank, int port, const std::string& stderr_path, const std::vector<std::string>& settings,
             const std::vector<std::string>& more) {
  return Process(train(settings, more), stderr_path,
                 {{"RANK", std::to_string(rank)},
                  {"WORLD_SIZE", "2"},
                  {"MASTER_ADDR", "127.0.0.1"},
                  {"MASTER_PORT", std::to_string(port)}});
}

std::string last_round(const std::string& checkpoints) {
  std::string last;
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("round-")) last = std::max(last, name);
  }
  return last;
}

}  // namespace

TEST_CASE("SIGTERM at one site stops all after the same round; the resumed run ends in the same bits") {
  const Folder folder;
  REQUIRE(run(train(kRounds, {"--in-turn", "--checkpoints", folder / "whole"})).status == 0);
  const int port = 20'000 + (::getpid() + 2791) % 10'000;
  // Without a stop, only the last round would be saved.
  std::vector<std::string> settings = kRounds;
  settings.emplace_back("trainer.checkpoint_rounds=1000");
  std::map<int, Process> sites;
  for (const int rank : {0, 1}) {
    sites.emplace(rank, site(rank, port, folder / ("stderr-" + std::to_string(rank)), settings,
                             {"--checkpoints", folder / "stopped", "--log", folder / "steps.jsonl"}));
  }
  REQUIRE(wait_for_file(folder / "steps.rank-1.jsonl"));
  while (content(folder / "steps.rank-1.jsonl").find("\"round\":2") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(sites.at(1).id(), SIGTERM);
  CHECK(sites.at(0).wait(60) == kStopped);
  CHECK(sites.at(1).wait(60) == kStopped);
  for (const int rank : {0, 1}) {
    const std::string said = content(folder / ("stderr-" + std::to_string(rank)));
    CAPTURE(said);
    CHECK(
        said.find("site-1 (rank 1) got SIGTERM; the run stops after this round or the next, within 5 min") !=
        std::string::npos);
    CHECK(said.find("because site-1 (rank 1) got SIGTERM; --resume goes on from there") != std::string::npos);
  }
  const std::string last = last_round(folder / "stopped");
  CHECK(last < "round-00000012");
  for (const char* node : {"/node-0.safetensors", "/node-1.safetensors"})
    CHECK(fs::exists(folder / ("stopped/" + last + node)));
  REQUIRE(run(train(kRounds, {"--local", "--checkpoints", folder / "stopped", "--resume"})).status == 0);
  CHECK(state_after(folder / "stopped", 12, 2) == state_after(folder / "whole", 12, 2));
}

TEST_CASE("SIGTERM to the parent of local processes stops them, and each reason is said once") {
  const Folder folder;
  Process parent(train(kRounds, {"--local", "--checkpoints", folder / "run"}), folder / "stderr");
  REQUIRE(wait_for_file(folder / "run/round-00000002/node-1.safetensors"));
  ::kill(parent.id(), SIGTERM);
  CHECK(parent.wait(60) == kStopped);
  const std::string said = content(folder / "stderr");
  CAPTURE(said);
  const std::size_t first = said.find("stopped after round ");
  CHECK(first != std::string::npos);
  CHECK(said.find("stopped after round ", first + 1) == std::string::npos);
}

TEST_CASE("a process that SIGTERM stops ends within the time that it was given") {
  const Folder folder;
  const int port = 20'000 + (::getpid() + 2891) % 10'000;
  for (const std::string within : {"2s", "0s"}) {
    CAPTURE(within);
    const std::string checkpoints = folder / ("run-" + within);
    Process first =
        site(0, port, folder / "0", kRounds, {"--checkpoints", checkpoints, "--stop-within", within});
    Process second = site(1, port, folder / "1", kRounds, {"--checkpoints", checkpoints});
    REQUIRE(wait_for_file(checkpoints + "/round-00000001/node-1.safetensors"));
    ::kill(second.id(), SIGSTOP);  // the round does not end
    ::kill(first.id(), SIGTERM);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(first.wait(60) == kStopped);
    const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (within == "0s") {
      CHECK(took_s < 1.5);
    } else {
      CHECK(took_s >= 2);
      CHECK(took_s < 2 + 2);
      CHECK(content(folder / "0").find("the round has not ended within 2 s (--stop-within)") !=
            std::string::npos);
    }
  }
}

TEST_CASE("a site that waits for others names them") {
  const Folder folder;
  const int port = 20'000 + (::getpid() + 2991) % 10'000;
  Process first = site(0, port, folder / "0", {"platform.sites=2"}, {"--start-timeout", "11s"});
  CHECK(first.wait(60) == 1);
  CHECK(content(folder / "0") ==
        "fomoe-train: has waited 10 s for site-1 (rank 1), for at most 11 s in all\n"
        "fomoe-train: site-1 (rank 1) did not respond within 11 s\n");
  const Ended wrong = run(train({}, {"--local", "--start-timeout", "soon"}));
  CHECK(wrong.status == 2);
  CHECK(wrong.said.find("--start-timeout: got \"soon\"") != std::string::npos);
  CHECK(wrong.said.find("; expected a time with its unit; for example --start-timeout 12h") !=
        std::string::npos);
}

TEST_CASE("processes of a parent that is killed end, also those that are stopped") {
  const Folder folder;
  Process parent(train(kRounds, {"--local", "--checkpoints", folder / "run"}), folder / "stderr");
  REQUIRE(wait_for_file(folder / "run/round-00000001/node-1.safetensors"));
  const std::vector<pid_t> children = parent.children();
  REQUIRE(children.size() == 2);
  for (const pid_t child : children) ::kill(child, SIGSTOP);
  parent.kill();
  CHECK(parent.wait() == 128 + SIGKILL);
  for (const pid_t child : children) {
    bool ended = false;
    for (int tried = 0; tried < 200 && !ended; ++tried) {
      std::ifstream file("/proc/" + std::to_string(child) + "/stat");
      std::string stat;
      std::getline(file, stat);
      ended = stat.empty() || stat.substr(stat.rfind(')')).starts_with(") Z");
      if (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK(ended);
  }
}
