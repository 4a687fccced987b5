// Tests fomoe-train grid as a program: killed at any moment, it goes on and ends with the same rows.
#include <doctest/doctest.h>

#include <random>
#include <sstream>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

namespace {

// 4 runs of 8 rounds, and one whose transfers outlast their round.
std::string grid_file(const Folder& folder) {
  std::ofstream(folder / "grid.toml")
      << "scenario = \"" << kScenario << "\"\n"
      << "set = [\"workload.tokens=131072\", \"strategy.local_steps=4\"]\n"
      << "[[runs]]\nvary = [\"seed=42,123\", \"strategy.expert_overlap=1,4\"]\n"
      << "[[runs]]\nset = [\"strategy.method=streaming_diloco\", \"strategy.overlap_steps=2\"]\n";
  return folder / "grid.toml";
}

std::vector<std::string> grid(const Folder& folder, const std::string& output,
                              const std::vector<std::string>& more = {}) {
  std::vector<std::string> command = {kTrain, "grid", grid_file(folder), "--output", folder / output};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

// The rows without the times, which differ, and without the note that a run was resumed.
std::string results_in(const std::string& path) {
  std::istringstream lines(content(path));
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    std::size_t end = line.size();
    for (int cell = 0; cell < 4; ++cell) end = line.rfind(',', end - 1);  // seconds, resumed, device, code
    // The code has a comma of its own: "0.1.0, commit …".
    all += line.substr(0, line.rfind(',', end - 1)) + '\n';
  }
  return all;
}

// The table with 9.5 as the loss of its first run.
std::string with_another_loss(const std::string& rows) {
  const std::string header = rows.substr(0, rows.find('\n'));
  const auto column =
      std::count(header.begin(), header.begin() + static_cast<long>(header.find(",loss,")), ',') + 1;
  std::size_t begin = header.size() + 1;
  for (long i = 0; i < column; ++i) begin = rows.find(',', begin) + 1;
  return rows.substr(0, begin) + "9.5" + rows.substr(rows.find(',', begin));
}

// Processes whose command line mentions the text.
int processes_with(const std::string& text) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string command = content(entry.path() / "cmdline");
    count += command.find(text) != std::string::npos ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("a grid that is killed again and again ends with the rows of an undisturbed grid") {
  const Folder folder;
  REQUIRE(Process(grid(folder, "whole"), folder / "log").wait() == 0);
  const std::string whole = results_in(folder / "whole/rows.csv");
  CHECK(std::count(whole.begin(), whole.end(), '\n') == 6);

  std::mt19937 random(20261123);
  int kills = 0, status = -1;
  while (status < 0 && kills < 12) {
    Process process(grid(folder, "killed"), folder / "log");
    status = process.wait(std::uniform_real_distribution<>(0.5, 3.5)(random));
    if (status >= 0) break;
    const bool softly = kills % 3 == 2;
    ::kill(process.id(), softly ? SIGINT : SIGKILL);
    const int ended = process.wait(10);
    if (ended == 0) break;  // it finished just before the signal
    CHECK(ended == (softly ? 128 + SIGINT : 128 + SIGKILL));
    ++kills;
  }
  if (status < 0) status = Process(grid(folder, "killed"), folder / "log").wait();
  CAPTURE(content(folder / "log"));
  CHECK(status == 0);
  CHECK(kills > 0);
  CHECK(results_in(folder / "killed/rows.csv") == whole);
  CHECK(content(folder / "killed/quality.csv") == content(folder / "whole/quality.csv"));
  CHECK(processes_with(folder / "killed") == 0);
  for (const auto& entry : fs::directory_iterator(folder / "killed/runs")) {
    CHECK(entry.path().extension() != ".checkpoints");
    CHECK(entry.path().extension() != ".tmp");
  }
}

TEST_CASE("a run of a grid that was killed between its last checkpoint and its report is made again") {
  const Folder folder;
  const std::vector<std::string> only_first = {"--first", "1"};
  REQUIRE(Process(grid(folder, "whole", only_first), folder / "log").wait() == 0);
  const std::string rows = content(folder / "whole/rows.csv");
  const std::string id = rows.substr(rows.find('\n') + 1, 12);
  fs::create_directories(folder / "killed/runs");
  REQUIRE(run({kTrain, "run", kScenario, "--in-turn", "--threads=1", "--set=workload.tokens=131072",
               "--set=strategy.local_steps=4", "--set=seed=42", "--set=strategy.expert_overlap=1",
               "--output=" + (folder / "report.json"),
               "--checkpoints=" + (folder / "killed/runs/") + id + ".checkpoints"})
              .status == 0);
  REQUIRE(fs::exists((folder / "killed/runs/") + id + ".checkpoints"));
  CHECK(Process(grid(folder, "killed", only_first), folder / "log").wait() == 0);
  CAPTURE(content(folder / "log"));
  CHECK(results_in(folder / "killed/rows.csv") == results_in(folder / "whole/rows.csv"));
  CHECK_FALSE(fs::exists((folder / "killed/runs/") + id + ".checkpoints"));
}

TEST_CASE("a run of a grid that is killed ends, also if it was stopped") {
  const Folder folder;
  Process process(grid(folder, "killed"), folder / "log");
  std::vector<pid_t> runs;
  for (int tried = 0; tried < 500 && runs.empty(); ++tried) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    runs = process.children();
  }
  REQUIRE(!runs.empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it has executed the program by then
  for (const pid_t child : runs) ::kill(child, SIGSTOP);
  process.kill();
  CHECK(process.wait() == 128 + SIGKILL);
  bool gone = false;
  for (int tried = 0; tried < 200 && !gone; ++tried) {
    gone = processes_with(folder / "killed") == 0;
    if (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(gone);
}

TEST_CASE("two grids share a folder without making a run twice, and finished rows are kept without reports") {
  const Folder folder;
  Process first(grid(folder, "shared", {"--shard", "1/2", "--jobs", "1"}), folder / "log-1");
  Process second(grid(folder, "shared", {"--shard", "2/2", "--jobs", "1"}), folder / "log-2");
  CHECK(first.wait() == 0);
  CHECK(second.wait() == 0);
  const std::string rows = content(folder / "shared/rows.csv");
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 6);  // each process wrote the runs of both
  REQUIRE(Process(grid(folder, "shared"), folder / "log").wait() == 0);
  CHECK(content(folder / "log").find("5 runs, 0 to make here") != std::string::npos);

  // Without shards too: each run is made by whoever comes first.
  Process third(grid(folder, "both", {"--jobs", "1"}), folder / "log-3");
  Process fourth(grid(folder, "both", {"--jobs", "1"}), folder / "log-4");
  CHECK(third.wait() == 0);
  CHECK(fourth.wait() == 0);
  std::size_t made = 0;
  const std::string said = content(folder / "log-3") + content(folder / "log-4");
  for (std::size_t at = 0; (at = said.find("  loss ", at)) != std::string::npos; ++at) ++made;
  CHECK(made == 5);

  fs::remove_all(folder / "shared/runs");  // only the table is left
  REQUIRE(Process(grid(folder, "shared"), folder / "log").wait() == 0);
  CHECK(content(folder / "log").find("5 runs, 0 to make here") != std::string::npos);
  fs::copy_file(folder / "shared/rows.csv", folder / "rows.csv");
  CHECK(Process(grid(folder, "again", {"--compare", folder / "rows.csv", "--sample", "2"}), folder / "log")
            .wait() == 0);
  CHECK(content(folder / "log").find("5 runs, 2 to make here") != std::string::npos);
  std::ofstream(folder / "rows.csv") << with_another_loss(rows);
  CHECK(Process(grid(folder, "again", {"--compare", folder / "rows.csv", "--sample", "2"}), folder / "log")
            .wait() == 1);
  // A table of other runs has nothing to compare with.
  CHECK(Process(
            grid(folder, "other", {"--compare", folder / "rows.csv", "--set", "trainer.learning_rate=0.02"}),
            folder / "log")
            .wait() == 2);
  CHECK(content(folder / "log").find("which has none of these runs") != std::string::npos);
  REQUIRE(Process(grid(folder, "shared", {"--set", "trainer.learning_rate=0.02"}), folder / "log").wait() ==
          2);
  CHECK(content(folder / "log").find("which this grid does not have") != std::string::npos);
}

TEST_CASE("a run that diverges is a row without a loss, and the grid goes on") {
  const Folder folder;
  std::ofstream(folder / "grid.toml")
      << "scenario = \"" << kScenario << "\"\n"
      << "set = [\"workload.tokens=262144\", \"trainer.warmup_steps=2000\"]\n"
      << "[[runs]]\nset = [\"trainer.learning_rate=10\", "
         "\"trainer.weight_decay=10\", \"strategy.method=diloco\"]\n[[runs]]\n";
  CHECK(Process({kTrain, "grid", folder / "grid.toml", "--output", folder / "out"}, folder / "log").wait() ==
        0);
  const std::string rows = content(folder / "out/rows.csv");
  CHECK(rows.find(",inf,") != std::string::npos);
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 3);
}

TEST_CASE("a grid refuses impossible options in one line, with status 2") {
  const Folder folder;
  for (const auto& [option, value, expected] :
       {std::tuple("--jobs", "0", "--jobs: got 0; expected a whole number of at least 1"),
        std::tuple("--threads", "-1", "--threads: got -1; expected a whole number of at least 1"),
        std::tuple("--shard", "3/2", "--shard: got \"3/2\"; expected i/n with 1 ≤ i ≤ n; for example")}) {
    const Ended ended = run(grid(folder, "none", {option, value}));
    CAPTURE(ended.said);
    CHECK(ended.status == 2);
    CHECK(ended.said.find(expected) != std::string::npos);
    CHECK(std::count(ended.said.begin(), ended.said.end(), '\n') == 1);
    CHECK_FALSE(fs::exists(folder / "none"));
  }
}
