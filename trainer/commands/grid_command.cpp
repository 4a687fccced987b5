#include "trainer/commands/grid_command.hpp"

#include <signal.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <iostream>
#include <map>
#include <set>
#include <thread>

#include "platforms/support/atomic_file.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/device/cpu_share.hpp"
#include "trainer/execution/executor.hpp"
#include "trainer/grid/grid_processes.hpp"
#include "trainer/grid/grid_tables.hpp"
#include "trainer/run/agreement.hpp"
#include "trainer/run/run_data.hpp"

namespace fomoe::trainer {

namespace po = boost::program_options;

namespace {

constexpr const char* kGridExamples = R"(
A grid file names a scenario and the values of its keys; `fomoe list keys` lists the keys of a grid file:

  scenario = "small-experts.toml"                              # relative to this file
  vary = ["seed=42,123,456"]                                   # in all tables below; the outermost loop
  [[runs]]
  set  = ["strategy.method=local_adamw"]
  vary = ["strategy.local_steps=8,32,128", "platform.sites=4,8"]

FOLDER then contains rows.csv (one row for each finished run; a run with a row is not made again), summary.csv (mean
and standard deviation over seeds), quality.csv (a table for quality.file in a scenario of `fomoe plan`) and runs/ (a
report for each run). A run that was interrupted goes on from its last checkpoint when the command is given again.
Several commands, also on several machines with a common file system, may work on one FOLDER.

Examples
  fomoe-train grid experiments/proxies/tiny.toml --output /tmp/tiny
  fomoe-train grid experiments/proxies/exp1.toml --output exp1 --jobs 2
  fomoe-train grid experiments/proxies/exp1.toml --output exp1 --shard 1/4
  fomoe-train grid experiments/proxies/exp1.toml --output again --compare experiments/proxies/results/exp1/rows.csv --sample 10
  fomoe-train grid experiments/proxies/exp1.toml --list
)";

po::options_description grid_options() {
  po::options_description options(
      "fomoe-train grid GRID.toml --output FOLDER [options]: trains every combination of the values of "
      "several keys, each in one process that trains all sites in turn");
  // clang-format off
  options.add_options()
    ("help", "print this help")
    ("output", po::value<std::string>()->value_name("FOLDER"), "folder for the tables and reports; it is created if it does not exist")
    ("jobs", po::value<int>()->value_name("N"), "number of runs at a time (default: one for each core)")
    ("threads", po::value<int>()->default_value(1)->value_name("N"), "CPU threads of each run")
    ("shard", po::value<std::string>()->default_value("1/1")->value_name("i/n"), "make only the i-th of n parts of the runs, for example in a Slurm array")
    ("set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"), "override a key of the scenario in all runs; may be repeated")
    ("first", po::value<int>()->value_name("N"), "make only the first N runs")
    ("compare", po::value<std::string>()->value_name("ROWS.csv"), "make only runs that have a row in this table, and say whether their losses are the same to the last bit")
    ("sample", po::value<int>()->value_name("N"), "with --compare: only N of these runs, spread over the table")
    ("list", po::bool_switch(), "print the runs, and make none");
  // clang-format on
  return options;
}

int positive(const po::variables_map& given, const std::string& option, int fallback) {
  if (!given.count(option)) return fallback;
  const int value = given[option].as<int>();
  if (value < 1) refuse_option(option, std::to_string(value), "a whole number of at least 1", "2");
  return value;
}

struct Shard {
  int index = 1, count = 1;
};

Shard shard_of(const std::string& text) {
  Shard shard;
  char rest = 0;
  const bool read = std::sscanf(text.c_str(), "%d/%d%c", &shard.index, &shard.count, &rest) == 2;
  if (!read || shard.index < 1 || shard.index > shard.count)
    refuse_option("shard", '"' + text + '"', "i/n with 1 ≤ i ≤ n", "1/4");
  return shard;
}

volatile sig_atomic_t caught = 0;
void note_signal(int signal) { caught = signal; }

// Without SA_RESTART, so that waiting for a process ends.
void catch_signals() {
  struct sigaction action {};
  action.sa_handler = note_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

std::string label_of(const Grid& grid, const GridRun& run) {
  std::string text = run.id;
  for (const std::string& key : grid.keys) {
    const std::string value = value_in(run, key);
    if (!value.empty()) text += ' ' + key.substr(key.rfind('.') + 1) + '=' + value;
  }
  return text;
}

std::string duration(double seconds) {
  char text[32];
  const auto minutes = static_cast<long>(seconds / 60);
  if (minutes >= 60) {
    std::snprintf(text, sizeof text, "%ld h %ld min", minutes / 60, minutes % 60);
  } else {
    std::snprintf(text, sizeof text, "%ld min %ld s", minutes, static_cast<long>(seconds) % 60);
  }
  return text;
}

class GridCommand {
 public:
  GridCommand(const Grid& grid, const std::string& file, GridFolder folder, int jobs, int threads)
      : grid_(grid),
        file_(file),
        folder_(folder),
        processes_(grid, folder, threads),
        jobs_(static_cast<std::size_t>(jobs)),
        results_(grid.runs.size()) {}

  /// Makes the runs with these indices, and returns the exit status.
  int make(const std::vector<std::size_t>& wanted) {
    std::deque<std::size_t> pending;
    const std::map<std::string, GridResult> rows = read_rows(folder_.file("rows.csv"));
    take_results(rows);
    for (const auto& [id, row] : rows) {
      const bool known =
          std::any_of(grid_.runs.begin(), grid_.runs.end(), [&](const GridRun& run) { return run.id == id; });
      if (!known) {
        throw FileError(folder_.file("rows.csv") + ":1: run: got the run " + id +
                        ", which this grid does not have; expected rows of this grid; for example another "
                        "--output folder");
      }
    }
    for (const std::size_t run : wanted) {
      if (!results_[run]) pending.push_back(run);
      // A process that was killed after the report of a run could not remove them.
      if (results_[run]) folder_.remove_checkpoints(grid_.runs[run]);
    }
    finished_before_ = wanted.size() - pending.size();
    wanted_ = wanted.size();
    std::cerr << grid_.runs.size() << " runs, " << pending.size() << " to make here, " << jobs_
              << " at a time\n";
    write_tables();
    catch_signals();
    std::vector<std::size_t> elsewhere;  // made by other processes
    std::set<std::size_t> repeated;      // trained a second time
    while ((!pending.empty() || processes_.under_way() > 0) && caught == 0) {
      while (!pending.empty() && processes_.under_way() < jobs_) {
        const std::size_t run = pending.front();
        pending.pop_front();
        if (!processes_.start(run)) elsewhere.push_back(run);
      }
      if (processes_.under_way() == 0) continue;
      const EndedRun ended = processes_.wait();
      if (ended.run == grid_.runs.size() || caught != 0) continue;
      if (ended.status == 0 && !read_result(folder_.of_run(grid_.runs[ended.run], ".json"))) {
        // An earlier process was killed between its last checkpoint and its report, so this one had nothing
        // left to do.
        if (repeated.insert(ended.run).second) {
          folder_.remove_checkpoints(grid_.runs[ended.run]);
          pending.push_front(ended.run);
          continue;
        }
      }
      note_end(ended);
    }
    if (caught != 0) {
      std::cerr << "\nstopped; give the same command again to go on\n";
      return 128 + caught;
    }
    write_tables();
    const auto unfinished =
        std::count_if(elsewhere.begin(), elsewhere.end(), [&](std::size_t run) { return !results_[run]; });
    if (unfinished > 0)
      std::cerr << unfinished << " runs are being made by another process, and are not in the tables yet\n";
    if (std::any_of(results_.begin(), results_.end(),
                    [](const auto& result) { return result && is_synthetic(result->data); }))
      std::cerr
          << "runs were trained on synthetic data, because the scenario names no trainer.data; their losses "
             "say nothing about a text\n";
    if (failed_ > 0) std::cerr << failed_ << " runs failed; give the same command again to repeat them\n";
    std::cout << folder_.file("rows.csv") << '\n' << folder_.file("summary.csv") << '\n';
    return failed_ > 0 ? 1 : 0;
  }

  /// Compares the results of these runs with the rows of another table, and returns the exit status.
  int compare(const std::vector<std::size_t>& made, const std::map<std::string, GridResult>& rows,
              const std::string& table) const {
    std::size_t same = 0, compared = 0;
    double largest = 0;
    for (const std::size_t run : made) {
      if (!results_[run]) continue;
      const GridResult &here = *results_[run], &there = rows.at(grid_.runs[run].id);
      ++compared;
      if (here.loss == there.loss && here.mean_site_loss == there.mean_site_loss) {
        ++same;
        continue;
      }
      largest = std::max(largest, std::abs(here.loss - there.loss));
      std::cout << label_of(grid_, grid_.runs[run]) << ": loss " << here.loss << ", in the table "
                << there.loss << " (" << there.device << ", " << there.code << ")\n";
    }
    std::cout << same << " of " << compared << " runs have the same bits as in " << table;
    if (same < compared) std::cout << "; the largest difference of a loss is " << largest << " nats";
    std::cout << '\n';
    return same == compared ? 0 : 1;
  }

 private:
  void note_end(const EndedRun& ended) {
    const GridRun& run = grid_.runs[ended.run];
    if (ended.status == 0) results_[ended.run] = read_result(folder_.of_run(run, ".json"));
    if (!results_[ended.run] && diverged(run)) {
      results_[ended.run].emplace();
      results_[ended.run]->loss = results_[ended.run]->mean_site_loss = HUGE_VAL;
      results_[ended.run]->code = code_version();
    }
    if (!results_[ended.run]) {
      ++failed_;
      std::cerr << "a run failed with status " << ended.status << ": " << label_of(grid_, run) << "\n  see "
                << folder_.of_run(run, ".log") << '\n';
      return;
    }
    folder_.remove_checkpoints(run);
    ++made_;
    const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    const std::size_t left = wanted_ - finished_before_ - made_ - failed_;
    char loss[32];
    std::snprintf(loss, sizeof loss, "%.4f", results_[ended.run]->loss);
    std::cerr << finished_before_ + made_ << '/' << wanted_ << "  loss " << loss << "  "
              << label_of(grid_, run) << "  ETA "
              << duration(seconds / static_cast<double>(made_) * static_cast<double>(left)) << '\n';
    write_tables();
  }

  // A run that diverges is a result, for example of a learning rate that is too large.
  [[nodiscard]] bool diverged(const GridRun& run) const {
    const std::optional<std::string> said = whole_file(folder_.of_run(run, ".log"));
    return said && said->find(kDivergedAt) != std::string::npos;
  }

  // Also those of runs that other processes have made meanwhile.
  void take_results(const std::map<std::string, GridResult>& rows) {
    for (std::size_t run = 0; run < grid_.runs.size(); ++run) {
      if (results_[run]) continue;
      results_[run] = read_result(folder_.of_run(grid_.runs[run], ".json"));
      const auto row = rows.find(grid_.runs[run].id);
      if (!results_[run] && row != rows.end()) results_[run] = row->second;
    }
  }

  void write_tables() {
    const GridLock lock(folder_);
    take_results(read_rows(folder_.file("rows.csv")));
    write_file(folder_.file("rows.csv"), rows_csv(grid_, results_));
    write_file(folder_.file("summary.csv"), summary_csv(grid_, results_));
    const std::string quality = quality_csv(grid_, results_, "fomoe-train grid " + file_);
    if (!quality.empty()) write_file(folder_.file("quality.csv"), quality);
  }

  using Clock = std::chrono::steady_clock;
  const Grid& grid_;
  std::string file_;
  GridFolder folder_;
  GridProcesses processes_;
  std::size_t jobs_;
  GridResults results_;
  Clock::time_point started_ = Clock::now();
  std::size_t wanted_ = 0, finished_before_ = 0, made_ = 0, failed_ = 0;
};

}  // namespace

int grid_command(const std::vector<std::string>& arguments) {
  const auto parsed = parse_command("grid", grid_options(), "grid", arguments, kGridExamples);
  if (!parsed) return 0;
  const po::variables_map& given = *parsed;
  if (!given.count("grid")) {
    throw UsageError(
        "GRID.toml: got nothing; expected a grid file; for example fomoe-train grid "
        "experiments/proxies/tiny.toml --output /tmp/tiny");
  }
  const bool list = given["list"].as<bool>();
  if (!list && !given.count("output"))
    refuse_option("output", "nothing", "a folder for the tables and reports", "/tmp/grid");
  const int cores = threads_for(1);
  const int threads = positive(given, "threads", 1);
  const int jobs = positive(given, "jobs", std::max(1, cores / threads));
  const Shard shard = shard_of(given["shard"].as<std::string>());
  const std::string file = given["grid"].as<std::string>();
  const Grid grid = read_grid(
      file, given.count("set") ? given["set"].as<std::vector<std::string>>() : std::vector<std::string>{});
  const std::size_t first =
      std::min(grid.runs.size(), static_cast<std::size_t>(positive(given, "first", 1 << 30)));
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < first; ++i) {
    if (i % static_cast<std::size_t>(shard.count) == static_cast<std::size_t>(shard.index - 1))
      wanted.push_back(i);
  }
  std::map<std::string, GridResult> rows;
  const std::string table = given.count("compare") ? given["compare"].as<std::string>() : "";
  if (!table.empty()) {
    rows = read_rows(table);
    if (rows.empty())
      refuse_option("compare", '"' + table + '"', "a rows.csv that fomoe-train grid wrote", "rows.csv");
    if (std::none_of(grid.runs.begin(), grid.runs.end(),
                     [&](const GridRun& run) { return rows.contains(run.id); }))
      refuse_option("compare", '"' + table + "\", which has none of these runs",
                    "the rows.csv of a grid with the same settings", "rows.csv");
    std::erase_if(wanted, [&](std::size_t run) { return !rows.contains(grid.runs[run].id); });
    const auto sample = static_cast<std::size_t>(positive(given, "sample", 1 << 30));
    if (sample < wanted.size()) {
      std::vector<std::size_t> chosen;
      for (std::size_t i = 0; i < sample; ++i) chosen.push_back(wanted[i * wanted.size() / sample]);
      wanted = std::move(chosen);
    }
  } else if (given.count("sample")) {
    refuse_option("sample", "no --compare", "--compare with a table", "10 --compare rows.csv");
  }
  if (list) {
    for (const std::size_t run : wanted) std::cout << label_of(grid, grid.runs[run]) << '\n';
    return 0;
  }
  GridCommand command(grid, file, GridFolder(given["output"].as<std::string>()), jobs, threads);
  const int status = command.make(wanted);
  return status != 0 || table.empty() ? status : command.compare(wanted, rows, table);
}

}  // namespace fomoe::trainer
