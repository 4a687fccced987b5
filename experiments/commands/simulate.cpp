#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "costmodel/formula/closed_form_parts.hpp"
#include "experiments/analysis/comparable_runs.hpp"
#include "experiments/analysis/envelope.hpp"
#include "experiments/analysis/sensitivity.hpp"
#include "experiments/analysis/uncertainty.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/progress.hpp"
#include "experiments/output/report_text.hpp"
#include "experiments/results/links_csv.hpp"
#include "experiments/results/plan_json.hpp"
#include "experiments/results/round_json.hpp"
#include "experiments/results/trace_json.hpp"
#include "platforms/support/parse_number.hpp"
#include "sim/executor/replicas.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

/// Returns 0 if --replicas was not given.
std::int64_t read_replicas(const po::variables_map& values, const Engine& engine) {
  if (!values.count("replicas")) return 0;
  const std::string text = values["replicas"].as<std::string>();
  const auto count = parse_number<std::int64_t>(text);
  if (!count || *count < 2 || *count > 100'000)
    throw UsageError(fmt::format(
        "--replicas: got \"{}\"; expected a whole number from 2 to 100000; for example --replicas 20", text));
  if (!engine.simulated)
    throw UsageError(
        "--replicas: got this option with --engine closed-form, which has no randomness; expected --engine "
        "simulated; for example --engine simulated --replicas 20");
  return *count;
}

}  // namespace

void run_simulate(const Arguments& arguments) {
  po::options_description options("Options");
  add_scenario_options(options);
  add_engine_options(options);
  add_sensitivity_option(options);
  add_calibration_option(options);
  options.add_options()(
      "trace", po::value<std::string>()->default_value("")->value_name("FILE.json"),
      "write the timeline of all sites and transfers, for ui.perfetto.dev (default: no trace)")(
      "links", po::value<std::string>()->default_value("")->value_name("FILE.csv"),
      "write the utilisation of each link over time (default: no file)")(
      "write-plan", po::value<std::string>()->default_value("")->value_name("PLAN.json"),
      "write the simulated traffic plan with all its operations (default: no file)")(
      "traffic-plan", po::value<std::string>()->default_value("")->value_name("PLAN.json"),
      "simulate this traffic plan instead of the method's plan; see experiments/plans/README.md (default: "
      "the method's plan)")("replicas", po::value<std::string>()->value_name("N"),
                            "simulate N consecutive seeds, starting with the scenario's, and report their "
                            "spread (default: one seed)")(
      "output", po::value<std::string>()->default_value("")->value_name("-|FILE"),
      "-: JSON on stdout; or a .json or .csv file (default: a summary on stdout)");
  const Help help = {
      "simulate",
      "SCENARIO.toml [options]",
      "Predicts how long the scenario takes, what it waits for and how many bytes it sends.",
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
        "--trace: got this option with --engine closed-form, which has no timeline; expected --engine "
        "simulated; for example --engine simulated --trace " +
        trace_path);
  }
  const std::string plan_path = (*values)["write-plan"].as<std::string>();
  const std::string given_plan = (*values)["traffic-plan"].as<std::string>();
  const Output written_plan("--write-plan", plan_path, {".json"});
  for (const auto& [option, path] : {std::pair{"--trace", trace_path}, {"--write-plan", plan_path}}) {
    if (path == "-")
      throw UsageError(fmt::format("{0}: got \"-\"; expected a file; for example {0} {1}.json", option,
                                   std::string_view(option) == "--trace" ? "trace" : "plan"));
  }
  for (const auto& [option, path] : {std::pair{"--write-plan", plan_path}, {"--traffic-plan", given_plan}}) {
    if (!path.empty() && !engine.simulated)
      throw UsageError(fmt::format(
          "{0}: got this option with --engine closed-form, which executes no plan; expected --engine "
          "simulated; for example --engine simulated {0} {1}",
          option, path));
  }

  const std::string links_path = (*values)["links"].as<std::string>();
  const Output links("--links", links_path, {".csv"});
  if (!links_path.empty() && !engine.simulated) {
    throw UsageError(
        "--links: got this option with --engine closed-form, which has no timeline; expected --engine "
        "simulated; for example --engine simulated --links " +
        links_path);
  }
  if (links_path == "-")
    throw UsageError("--links: got \"-\"; expected a file; for example --links links.csv");
  engine.options.record_flows = !links_path.empty();
  engine.options.on_progress = show_simulation();

  const CalibrationFile calibration = read_calibration(*values);
  const costmodel::Scenario scenario = calibration.stated(read_scenario(*values, calibration.settings()));
  const std::int64_t replicas = read_replicas(*values, engine);
  sim::SimulatedRun run =
      given_plan.empty()
          ? execute(scenario, engine)
          : sim::simulate_plan(scenario, scenario::read_plan(given_plan, scenario.sites()), engine.options);
  if (replicas > 0) {
    sim::RunOptions silent = engine.options;  // replicas run at the same time
    silent.on_progress = {};
    const auto with_seed = [&](const costmodel::Scenario& seeded) {
      return given_plan.empty() ? sim::simulate_scenario(seeded, silent).report
                                : sim::simulate_plan(seeded, run.plan, silent).report;
    };
    sim::add_replicas(run.report, scenario, with_seed, replicas);
  }
  if (!(run.report.wall_clock_s > 0))  // never happens for a method's own plan
    throw UsageError(
        "--traffic-plan: got a plan that takes no time; expected a plan with computations or transfers; for "
        "example --traffic-plan experiments/plans/hub-and-spoke.json");
  // All texts are made before the first file is written, so that a failure leaves no file behind. The closed
  // form cannot compute a user's own plan, and such a plan sends other bytes than the scenario's method.
  const ShownSensitivity sensitivity =
      given_plan.empty() ? read_sensitivity(*values, scenario, engine) : ShownSensitivity{};
  const ShownUncertainty uncertainty =
      given_plan.empty() ? find_uncertainty(*values, scenario, calibration, engine, run.report.wall_clock_s)
                         : ShownUncertainty{};
  const auto json = [&] {
    scenario::Json document = scenario::to_json(run.report);
    document["sensitivity"] = sensitivity_json(sensitivity);
    document["uncertainty"] = uncertainty_json(uncertainty);
    document["validation_envelope"] = outside_of_validation(run.report, scenario);
    document["accuracy"] = accuracy_json(run.report, scenario);
    if (given_plan.empty()) {
      document["sent_bytes_per_site"] =
          scenario::to_json(costmodel::closed_form_parts(scenario).summary.sent);
      const Engine brief = engine.simulated ? brief_engine(scenario) : engine;
      const auto simulated = [&](const auto& scenarios) { return simulate_all(scenarios, brief.options); };
      document["bandwidth_curve"] =
          brief.simulated ? scenario::to_json(costmodel::bandwidth_curve(scenario, simulated), "simulated")
                          : scenario::to_json(costmodel::bandwidth_curve(scenario), "closed-form");
    }
    if (!run.timeline.rounds.empty())
      document["round_timeline"] =
          scenario::to_json(costmodel::round_timeline(run.plan, run.timeline), run.plan, scenario.platform);
    document["scenario"] = scenario::to_json(scenario);
    return scenario::to_text(document);
  };
  const std::string answer = output.for_people()
                                 ? report_text(run.report, scenario,
                                               sensitivity_text(sensitivity, run.report.wall_clock_s) +
                                                   uncertainty_text(uncertainty) + comparable_text(scenario))
                             : output.csv() ? csv_header() + '\n' + csv_row(run.report, scenario) + '\n'
                                            : json();
  const std::string plan = plan_path.empty() ? "" : scenario::plan_json(run.plan, run.executed);
  if (!plan_path.empty()) written_plan.write(plan);
  if (!trace_path.empty()) trace.write(scenario::trace_json(run.plan, scenario.platform, run.timeline));
  if (!links_path.empty()) {
    const auto effective = costmodel::effective_platform(scenario.platform, scenario.network);
    links.write(scenario::links_csv(run.plan, effective, run.timeline));
  }
  output.write(answer);
}

}  // namespace fomoe::commands
