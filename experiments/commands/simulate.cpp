#include "experiments/commands/command.hpp"
#include "experiments/commands/execute.hpp"
#include "experiments/commands/options.hpp"
#include "experiments/scenario/json_io.hpp"
#include "experiments/scenario/links_csv.hpp"
#include "experiments/scenario/trace_json.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

void run_simulate(const Arguments& arguments) {
  po::options_description options("Options");
  add_scenario_options(options);
  add_engine_options(options);
  options.add_options()("trace", po::value<std::string>()->default_value("")->value_name("FILE.json"),
                        "write who did what when, for ui.perfetto.dev (default: no trace)")(
      "links", po::value<std::string>()->default_value("")->value_name("FILE.csv"),
      "write how busy each link was over time (default: not)")(
      "output", po::value<std::string>()->default_value("")->value_name("-|FILE"),
      "-: JSON on stdout; a file in .json or .csv (default: a summary for people on stdout)");
  const Help help = {
      "simulate",
      "SCENARIO.toml [options]",
      "How long the scenario takes, what it waits for and what it sends.",
      {"fomoe simulate experiments/scenarios/two-sites.toml",
       "fomoe simulate experiments/scenarios/two-sites.toml --set strategy.local_steps=64 --output -",
       "fomoe simulate experiments/scenarios/eight-regions.toml --set compute.step_time=420ms"}};
  const auto values = parse(arguments, help, options, "scenario");
  if (!values) return;

  const Output output("--output", (*values)["output"].as<std::string>(), {".json", ".csv"});
  const std::string trace_path = (*values)["trace"].as<std::string>();
  const Output trace("--trace", trace_path, {".json"});
  Engine engine = read_engine(*values);
  if (!trace_path.empty() && !engine.simulated) {
    throw UsageError(
        "--trace: got it with --engine closed-form, which has no timeline; expected --engine simulated; "
        "for example --engine simulated --trace " +
        trace_path);
  }
  if (trace_path == "-")
    throw UsageError("--trace: got \"-\"; expected a file; for example --trace trace.json");

  const std::string links_path = (*values)["links"].as<std::string>();
  const Output links("--links", links_path, {".csv"});
  if (!links_path.empty() && !engine.simulated) {
    throw UsageError(
        "--links: got it with --engine closed-form, which has no timeline; expected --engine simulated; "
        "for example --engine simulated --links " +
        links_path);
  }
  if (links_path == "-")
    throw UsageError("--links: got \"-\"; expected a file; for example --links links.csv");
  engine.options.record_flows = !links_path.empty();

  const costmodel::Scenario scenario = read_scenario(*values);
  const sim::SimulatedRun run = execute(scenario, engine);
  // Both texts exist before the first file does: a failure leaves neither behind.
  const std::string answer = output.for_people() ? report_text(run.report, scenario)
                             : output.csv()      ? csv_header() + '\n' + csv_row(run.report, scenario) + '\n'
                                                 : scenario::run_report_json(run.report, scenario);
  if (!trace_path.empty()) trace.write(scenario::trace_json(run.plan, scenario.platform, run.timeline));
  if (!links_path.empty()) {
    const auto effective = costmodel::effective_platform(scenario.platform, scenario.network);
    links.write(scenario::links_csv(run.plan, effective, run.timeline));
  }
  output.write(answer);
}

}  // namespace fomoe::commands
