#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "costmodel/plan/method.hpp"
#include "experiments/cli/answer.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/progress.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/sweep/journal.hpp"
#include "experiments/sweep/plotted_rows.hpp"
#include "experiments/sweep/row_writer.hpp"
#include "experiments/sweep/rows.hpp"
#include "experiments/sweep/unchanged.hpp"
#include "experiments/text/plot.hpp"
#include "platforms/support/file_claims.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

// The rows of a short sweep are what `fomoe simulate` answers. In a longer one, a row has about 0.1 s of CPU
// time, a tenth of that.
constexpr std::uint64_t kShortSweep = 32;           // rows, of all shards
constexpr std::uint64_t kMostRows = 1'000'000'000;  // of a shard, about 340 GB
constexpr std::int64_t kMostFlowsOfRow = 30'000;

/// Returns 0 if the text is not a whole number.
std::uint64_t whole_number(std::string_view text) { return parse_number<std::uint64_t>(text).value_or(0); }

int read_jobs(const po::variables_map& values) {
  if (values.count("jobs") == 0) return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const std::string text = values["jobs"].as<std::string>();
  const std::uint64_t jobs = whole_number(text);
  if (jobs < 1 || jobs > 4096) {
    throw UsageError(fmt::format(
        "--jobs: got \"{}\"; expected a whole number from 1 to 4096; for example --jobs 2", text));
  }
  return static_cast<int>(jobs);
}

struct Shard {
  std::uint64_t index = 1, count = 1;
};

Shard read_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::uint64_t index = whole_number(text.substr(0, slash));
  const std::uint64_t count = slash == std::string::npos ? 0 : whole_number(text.substr(slash + 1));
  if (index < 1 || index > count || count > 1'000'000) {
    throw UsageError(fmt::format(
        "--shard: got \"{}\"; expected i/n with 1 ≤ i ≤ n; for example --shard 1/4 … --shard 4/4", text));
  }
  return {index, count};
}

std::vector<sweep::Axis> read_axes(const po::variables_map& values) {
  if (values.count("vary") == 0) {
    throw UsageError(
        "--vary: got none; expected at least one; for example --vary strategy.local_steps=16,32,64");
  }
  std::vector<sweep::Axis> axes;
  for (const std::string& text : values["vary"].as<std::vector<std::string>>())
    axes.push_back(sweep::parse_axis(text));
  return axes;
}

void check_plot(const po::variable_value& output, const Shard& shard) {
  refuse_plot_beside_json(output);
  if (shard.count > 1)
    throw UsageError(fmt::format(
        "--plot: got this option with --shard {}/{}; expected a whole sweep; for example --plot without "
        "--shard",
        shard.index, shard.count));
}

/// Simulated rows are kept in FILE.partial until FILE is complete.
std::optional<sweep::Journal> open_journal(const std::string& path, bool simulated, bool resume,
                                           const sweep::Request& request, const sim::RunOptions& options) {
  if (resume && path == "-") {
    throw UsageError(
        "--resume: got this option with rows on stdout; expected an output file to continue; for example "
        "--output rows.csv --resume");
  }
  if (resume && !simulated)
    message(
        "--resume has no effect: computing all rows by the closed form is faster than reading earlier rows");
  if (path == "-" || !simulated) return {};
  using InFile = sweep::Journal::Found;
  std::optional<sweep::Journal> journal(std::in_place, path + ".partial",
                                        sweep::identity_of(request, options));
  const InFile found = journal->found();
  if (found == InFile::foreign)
    throw UsageError(fmt::format(
        "--output: got {0}, beside which {0}.partial is no journal of a sweep, but another file or a "
        "link; expected a name whose journal replaces nothing; for example --output "
        "another.csv",
        path));
  if (!resume && found == InFile::other)
    throw UsageError(
        fmt::format("--output: got {0}, beside which {0}.partial has the rows of another interrupted sweep, "
                    "which would be "
                    "discarded; expected another file, or no journal; for example rm {0}.partial",
                    path));
  if (!resume && found == InFile::same) {
    const std::uint64_t rows = journal->stored_rows(request.begin);
    if (rows > 0)
      throw UsageError(fmt::format(
          "--output: got {0}, beside which {0}.partial has {1} of {2} rows of this sweep, which was "
          "interrupted "
          "and would begin anew; expected --resume to continue, or rm {0}.partial; for example --output {0} "
          "--resume",
          path, rows, request.end - request.begin));
  }
  if (found == InFile::other) {
    throw UsageError(fmt::format(
        "--resume: got {}.partial, which belongs to another sweep; expected rows of the same program, "
        "scenario files, values and options; for example another --output, or no --resume",
        path));
  }
  return journal;
}

/// The scenario of a row; nothing if it cannot be read, which the row itself reports. Without `checked`, its
/// values may contradict each other.
std::optional<costmodel::Scenario> scenario_of(const sweep::Request& request, std::uint64_t row,
                                               bool checked = false) {
  scenario::ReadOptions reading;
  reading.overrides = request.overrides;
  for (std::string& assignment : request.grid.assignments(row))
    reading.overrides.push_back(std::move(assignment));
  reading.check_together = checked;
  try {
    return scenario::read_scenario(request.scenario_path, reading);
  } catch (const FileError&) {
    return std::nullopt;
  }
}

std::string currency_of(const std::optional<costmodel::Scenario>& scenario) {
  return scenario && scenario->prices ? scenario->prices->currency : "";
}

/// The currency of all rows; empty without prices. Refuses prices in several currencies.
std::string only_currency(const sweep::Request& request, const std::optional<costmodel::Scenario>& first) {
  std::string usual = currency_of(first);
  for (std::size_t a = 0; a < request.grid.axes().size(); ++a) {
    const sweep::Axis& axis = request.grid.axes()[a];
    if (!axis.key.starts_with("prices.")) continue;
    for (std::size_t i = 1; i < axis.size(); ++i) {
      const std::string other = currency_of(scenario_of(request, request.grid.with_digit(0, a, i)));
      if (!usual.empty() && !other.empty() && other != usual)
        throw UsageError(
            fmt::format("--vary {}: got prices in {} and {}; expected one currency; for example --vary "
                        "prices.gpu_hour=1USD,2USD",
                        axis.key, usual, other));
    }
  }
  return usual;
}

/// Says that a key changes no row, and why, if the method does not use the key.
std::string no_effect(const costmodel::Scenario& first, const std::string& key, bool several_methods,
                      bool simulated) {
  const costmodel::Method& method = *first.strategy.method;
  const bool of_strategy = key.starts_with("strategy.") && key != "strategy.method";
  const std::string name = of_strategy ? key.substr(9, key.find('.', 9) - 9) : "";
  const bool unused = of_strategy && !several_methods && !costmodel::has_axis(method, name);
  return fmt::format("{} changes no row: {}", key,
                     unused ? fmt::format("{} does not use it", method.name)
                     : simulated
                         ? "nothing in these rows depends on it, or it limits nothing"
                         : "nothing in these rows depends on it, it limits nothing, or the closed form "
                           "leaves it out");
}

}  // namespace

void run_sweep(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("vary", po::value<std::vector<std::string>>()->value_name("KEY=VALUES"),
                        "a key and its values: v1,v2,…, lo..hi+step, lo..hi*factor or lo..hi*n/decade; "
                        "required, once for each key; a value that "
                        "is given twice counts once")(
      "jobs", po::value<std::string>()->value_name("N"),
      "number of worker processes for --engine simulated (default: one for each core)")(
      "shard", po::value<std::string>()->default_value("1/1")->value_name("i/n"),
      "compute only the i-th of n parts of the rows; the concatenation of all parts is the whole sweep")(
      "output", po::value<std::string>()->default_value("-")->value_name("-|FILE"),
      "-: JSON on stdout; or a .json or .csv file")(
      "resume", po::bool_switch(),
      "continue an interrupted simulated sweep to the same file; start from the beginning if there is none")(
      "plot", po::bool_switch(),
      "draw the wall clocks on stdout, in place of the JSON: bars if one key varies, a heat map if two keys "
      "vary");
  add_scenario_options(options);
  add_engine_options(options);
  const Help help = {
      "sweep",
      "SCENARIO.toml --vary KEY=VALUES --vary … [options]",
      "Computes one row for each combination of the values; the last --vary varies fastest. The row of "
      "an\nimpossible combination states the reason. Numbers are in SI units, which the column names "
      "include.",
      {"fomoe sweep experiments/scenarios/two-sites.toml --vary strategy.local_steps=16,64 --vary "
       "'platform.bandwidth=100Mbps..10Gbps*1/decade'",
       "fomoe sweep experiments/scenarios/two-sites.toml --engine closed-form --vary "
       "strategy.method=ddp,diloco,fomoe --vary platform.latency=0ms..50ms+10ms",
       "fomoe sweep experiments/scenarios/two-sites.toml --vary strategy.local_steps=1..64*4 --vary "
       "'platform.bandwidth=100Mbps..10Gbps*2/decade' --plot"}};
  const auto values = parse(arguments, help, options, "scenario");
  if (!values) return;

  const std::string path = (*values)["output"].as<std::string>();
  // Rejects a path that cannot be written before any work is done.
  (void)Output("--output", path, {".csv", ".json"});
  if (path != "-") claim_output("the journal of --output", path + ".partial");
  Engine engine = read_engine(*values);
  const int jobs = read_jobs(*values);
  const Shard shard = read_shard((*values)["shard"].as<std::string>());
  const bool resume = (*values)["resume"].as<bool>();
  const bool plot = (*values)["plot"].as<bool>();
  if (plot) check_plot((*values)["output"], shard);

  sweep::Request request{
      (*values)["scenario"].as<std::vector<std::string>>().front(), {}, sweep::Grid(read_axes(*values))};
  request.overrides = overrides_of(*values);
  // Each shard gets whole rows. The product is at most 10¹² · 10⁶, which fits 64 bits.
  request.begin = request.grid.rows() * (shard.index - 1) / shard.count;
  request.end = request.grid.rows() * shard.index / shard.count;
  if (request.end - request.begin > kMostRows)
    throw UsageError(
        fmt::format("--vary: got {} rows; expected at most {} in one shard; for example --shard 1/{}",
                    request.end - request.begin, kMostRows, request.grid.rows() / kMostRows + 1));
  const bool short_sweep = request.grid.rows() <= kShortSweep;
  if (!short_sweep) engine.options.most_flows = kMostFlowsOfRow;

  const std::optional<costmodel::Scenario> first = scenario_of(request, 0);  // need not be possible
  if (first) warn_about(*first);
  if (first) {
    const std::string missing = left_out(*first, engine.simulated, false);
    if (!missing.empty()) message("the rows of a sweep leave out " + missing);
  }
  const std::string currency = only_currency(request, first);
  std::optional<sweep::PlottedRows> plotted;
  if (plot) plotted.emplace(request.grid, plot_width());
  std::optional<sweep::Journal> journal =
      open_journal(path, engine.simulated, resume, request, engine.options);
  std::optional<sweep::RowWriter> writer;  // not if the plot takes the place of the JSON
  if (!plot || path != "-")
    writer.emplace(path, request.grid, engine.simulated ? "simulated" : "closed-form", currency);
  sweep::UnchangedAxes unchanged(request.grid);
  std::uint64_t rows = 0, impossible = 0, approximate = 0;
  std::optional<std::uint64_t> first_possible;
  std::string first_problem;
  {
    Progress progress(request.end - request.begin);
    const auto sink = [&](const sweep::Chunk& chunk) {
      for (std::size_t i = 0; i < chunk.rows; ++i) {
        const std::string& problem = chunk.problems[i];
        if (problem.empty()) {
          if (!first_possible) first_possible = chunk.first_row + i;
          if (!engine.simulated && chunk.exact[i] == 0) ++approximate;
        } else if (impossible++ == 0) {
          first_problem = problem;
        }
      }
      unchanged.add(chunk);
      if (writer) writer->write(chunk);
      if (plotted) plotted->add(chunk);
      progress.at(rows += chunk.rows);
    };
    if (journal) {
      if (resume && journal->found() == sweep::Journal::Found::same) {
        request.begin = journal->go_on(request.begin, sink);
        message(fmt::format("resumed after {} rows of an earlier run", rows));
      } else {
        journal->start_anew();
      }
    }
    if (engine.simulated) {
      sweep::simulated_rows(request, engine.options, jobs, [&](const sweep::Chunk& chunk) {
        if (journal) journal->append(chunk);
        sink(chunk);
      });
    } else {
      sweep::closed_form_rows(request, sink);
    }
  }
  // A sweep may contain impossible combinations. If all combinations are impossible, however, the input is
  // wrong.
  if (rows > 0 && impossible == rows && shard.count == 1) {
    if (journal) journal->remove();
    throw FileError(
        fmt::format("--vary: no combination is possible; the error of the first one: {}", first_problem));
  }
  if (writer) writer->finish(first_possible ? scenario_of(request, *first_possible, true) : std::nullopt);
  if (journal) journal->remove();
  if (plotted) scenario::write_answer(plotted->text());
  if (path != "-") message(fmt::format("wrote {}: {} rows", path, rows));
  if (first) {
    for (const std::size_t axis : unchanged.found())
      message(no_effect(*first, request.grid.axes()[axis].key,
                        std::any_of(request.grid.axes().begin(), request.grid.axes().end(),
                                    [](const sweep::Axis& a) { return a.key == "strategy.method"; }),
                        engine.simulated));
  }
  if (engine.simulated && !engine.options.all_rounds && !short_sweep)
    message(fmt::format(
        "each row of more than {} has a tenth of the simulation time of `fomoe simulate`, whose answer can "
        "differ by a few percent; --rounds all simulates all rounds",
        kShortSweep));
  if (approximate > 0)
    message(fmt::format(
        "the closed form only approximates {} of {} rows, whose closed_form_exact is false; `fomoe explain` "
        "says why, and --engine simulated simulates them",
        approximate, rows));
  if (impossible > 0)
    message(
        fmt::format("{} of {} combinations are impossible; for example {}", impossible, rows, first_problem));
}

}  // namespace fomoe::commands
