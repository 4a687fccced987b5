#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include "costmodel/report/validation.hpp"
#include "experiments/analysis/measured_runs.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/progress.hpp"
#include "experiments/output/validation_text.hpp"
#include "experiments/scenario/sections/network_file.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

constexpr const char* kExample = "--limit wall_clock=0.02";

/// "wall_clock=0.02" limits the worst run, "median.wall_clock=0.01" the median of the runs.
ErrorLimit read_limit(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::size_t dot = name.find('.');
  ErrorLimit limit;
  limit.statistic = dot == std::string::npos ? "worst" : name.substr(0, dot);
  const std::string quantity = dot == std::string::npos ? name : name.substr(dot + 1);
  (void)choice("--limit", limit.statistic, {"worst", "p95", "median"}, ".wall_clock=0.02");
  const auto& names = costmodel::kComparedNames;
  (void)choice("--limit", quantity, {names.begin(), names.end()}, "=0.02");
  limit.what =
      static_cast<costmodel::Compared>(std::find(names.begin(), names.end(), quantity) - names.begin());
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  const bool percent = scenario::is_percentage(value);
  const std::string_view digits = std::string_view(value).substr(0, value.size() - (percent ? 1 : 0));
  const auto most = parse_number<double>(digits);
  if (!most || !(*most >= 0) || !std::isfinite(*most)) {
    throw UsageError(fmt::format(
        "--limit: got \"{}\"; expected QUANTITY=SHARE with a number of at least 0 or a percentage; "
        "for example {}",
        text, kExample));
  }
  limit.most = percent ? *most / 100 : *most;
  return limit;
}

/// Refuses runs that the network model was fitted to: their errors do not predict the error of the next run.
void refuse_calibrated(const std::vector<ReadRun>& runs, const scenario::NetworkFile& file,
                       const std::string& path) {
  for (const ReadRun& run : runs) {
    const std::string& id = run.measured.record.id;
    if (std::find(file.runs.begin(), file.runs.end(), id) == file.runs.end()) continue;
    throw UsageError(fmt::format(
        "{}: got run {}, which {} was fitted to; expected runs that were not used for the calibration; for "
        "example fit to one half of the runs and validate the other",
        run.measured.path, id, path));
  }
}

}  // namespace

void run_validate(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()(
      "limit", po::value<std::vector<std::string>>()->value_name("QUANTITY=SHARE"),
      "exit with status 1 if the worst error exceeds the share; the prefix median. or p95. selects that "
      "statistic instead; may be given several times; quantities: wall_clock, compute, communication, "
      "synchronization, utilization, bytes, first_round, later_rounds (default: no limit)")(
      "network-model", po::value<std::string>()->value_name("FILE.toml"),
      "file with a [network_model] from `fomoe calibrate`, which replaces the same keys of the runs' "
      "scenarios (default: the scenarios' values)")(
      "set", po::value<std::vector<std::string>>()->value_name("KEY=VALUE"),
      "override a key of network_model; may be given several times (default: none)")(
      "output", po::value<std::string>()->default_value("")->value_name("-|FILE"),
      "-: JSON on stdout; or a .json or .csv file (default: tables on stdout)");
  const Help help = {
      "validate",
      "RUN.json… [options]",
      "Computes how far predictions are from measured runs. Each report of `fomoe-train run --output` "
      "or\n`fomoe-wan run --report` contains its scenario. This scenario is simulated, and the two reports "
      "are compared. A run whose sites worked in turn (--in-turn) tells compute and bytes only. A run that "
      "lost "
      "sites\nand went on is predicted with the rounds in which they were away; bytes and rounds are those "
      "since "
      "the last start.\nThe error "
      "is predicted ÷ measured − 1; for utilization it is predicted − measured.",
      {"fomoe validate experiments/validation/runs/*.json",
       "fomoe validate experiments/validation/runs/*.json --set network_model.bandwidth_efficiency=0.965 "
       "--output -"}};
  const auto values = parse(arguments, help, options, "report", Positionals::several);
  if (!values) return;
  const Output output("--output", (*values)["output"].as<std::string>(), {".json", ".csv"});
  std::vector<ErrorLimit> limits;
  if (values->count("limit")) {
    for (const std::string& text : (*values)["limit"].as<std::vector<std::string>>())
      limits.push_back(read_limit(text));
  }
  std::vector<std::string> overrides;
  scenario::NetworkFile network;
  const std::string network_path =
      values->count("network-model") ? (*values)["network-model"].as<std::string>() : "";
  if (!network_path.empty()) {
    network = scenario::read_network_file(network_path);
    overrides = network.overrides;
  }
  for (const std::string& more : network_overrides(*values)) overrides.push_back(more);

  std::vector<ReadRun> runs = read_runs((*values)["report"].as<std::vector<std::string>>(), overrides,
                                        {/*in_turn=*/true, /*resumed=*/true});
  refuse_calibrated(runs, network, network_path);
  std::vector<ValidatedRun> validated;
  Progress progress(runs.size());
  for (ReadRun& run : runs) {
    costmodel::RunReport predicted;
    const costmodel::RunErrors errors = errors_of(run, predicted);
    const costmodel::RunReport& measured = run.measured.report;
    validated.push_back(
        {run.measured, run.scenario, predicted, errors, costmodel::bound_of(predicted, measured)});
    progress.at(validated.size());
  }
  const std::vector<std::string> exceeded = check_limits(validated, limits);
  output.write(output.for_people() ? validation_text(validated)
               : output.csv()      ? validation_csv(validated)
                                   : validation_json(validated));
  if (exceeded.empty()) return;
  throw std::runtime_error(scenario::joined(exceeded, "\nfomoe: "));
}

}  // namespace fomoe::commands
