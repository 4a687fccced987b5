#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "costmodel/formula/resolved.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/timeline/sent_classes.hpp"
#include "experiments/analysis/comparable_runs.hpp"
#include "experiments/analysis/envelope.hpp"
#include "experiments/analysis/interval.hpp"
#include "experiments/analysis/limits.hpp"
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

po::options_description simulate_options() {
  po::options_description options("Options");
  add_scenario_options(options);
  add_engine_options(options);
  add_sensitivity_option(options);
  add_calibration_option(options);
  add_limits_option(options);
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
  return options;
}

Help simulate_help() {
  return {"simulate",
          "SCENARIO.toml [options]",
          "Predicts how long the scenario takes, what it waits for and how many bytes it sends.",
          {"fomoe simulate experiments/scenarios/two-sites.toml",
           "fomoe simulate experiments/scenarios/two-sites.toml --set strategy.local_steps=64 --output -",
           "fomoe simulate experiments/scenarios/eight-regions.toml --set compute.step_time=420ms"}};
}

/// A file that the answer may be accompanied by; the path is empty if it is not wanted.
struct WantedFile {
  WantedFile(const po::variables_map& values, const std::string& option, const std::string& extension)
      : path(values[option].as<std::string>()), output("--" + option, path, {extension}) {}
  [[nodiscard]] bool wanted() const { return !path.empty(); }

  std::string path;
  Output output;
};

void refuse_stdout(const WantedFile& file, const char* option, const char* example) {
  if (file.path == "-")
    throw UsageError(fmt::format("{0}: got \"-\"; expected a file; for example {0} {1}", option, example));
}

void refuse_without_timeline(const Engine& engine, const char* option, const std::string& path) {
  if (path.empty() || engine.simulated) return;
  throw UsageError(
      fmt::format("{0}: got this option with --engine closed-form, which has no timeline; expected --engine "
                  "simulated; for example --engine simulated {0} {1}",
                  option, path));
}

void refuse_without_plan(const Engine& engine, const char* option, const std::string& path) {
  if (path.empty() || engine.simulated) return;
  throw UsageError(
      fmt::format("{0}: got this option with --engine closed-form, which executes no plan; expected --engine "
                  "simulated; for example --engine simulated {0} {1}",
                  option, path));
}

/// What the command line asks for, without the scenario.
struct SimulateRequest {
  Output output;
  Engine engine;
  WantedFile trace, plan, links;
  std::string given_plan;  // the file of a traffic plan that takes the place of the method's; empty: none
};

SimulateRequest read_request(const po::variables_map& values) {
  const Output output("--output", values["output"].as<std::string>(), {".json", ".csv"});
  const WantedFile trace(values, "trace", ".json");
  Engine engine = read_engine(values);
  refuse_without_timeline(engine, "--trace", trace.path);
  const WantedFile plan(values, "write-plan", ".json");
  const std::string given_plan = values["traffic-plan"].as<std::string>();
  refuse_stdout(trace, "--trace", "trace.json");
  refuse_stdout(plan, "--write-plan", "plan.json");
  refuse_without_plan(engine, "--write-plan", plan.path);
  refuse_without_plan(engine, "--traffic-plan", given_plan);
  const WantedFile links(values, "links", ".csv");
  refuse_without_timeline(engine, "--links", links.path);
  refuse_stdout(links, "--links", "links.csv");
  engine.options.record_flows = links.wanted();
  engine.options.on_progress = show_simulation();
  return {output, engine, trace, plan, links, given_plan};
}

/// Executes the scenario, and other seeds of it if `replicas` is above 0.
sim::SimulatedRun simulate(const SimulateRequest& request, const costmodel::Scenario& scenario,
                           std::int64_t replicas) {
  const sim::RunOptions& options = request.engine.options;
  const std::string& given_plan = request.given_plan;
  sim::SimulatedRun run = given_plan.empty()
                              ? execute(scenario, request.engine)
                              : sim::simulate_plan(scenario,
                                                   scenario::read_plan(given_plan, scenario.sites(),
                                                                       scenario.platform.store.has_value()),
                                                   options);
  if (replicas > 0) {
    sim::RunOptions silent = options;  // replicas run at the same time
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
  return run;
}

/// How the answer depends on its inputs. Both are empty for a user's own plan: the closed form cannot compute
/// it, and it sends other bytes than the scenario's method.
struct InputEffects {
  ShownSensitivity sensitivity;
  ShownUncertainty uncertainty;
  AnswerInterval interval;
};

std::string simulate_json(const SimulateRequest& request, const costmodel::Scenario& scenario,
                          const sim::SimulatedRun& run, const InputEffects& effects) {
  scenario::Json document = scenario::to_json(run.report);
  document["sensitivity"] = sensitivity_json(effects.sensitivity);
  document["uncertainty"] = uncertainty_json(effects.uncertainty);
  document["validation_envelope"] = outside_of_validation(run.report, scenario);
  document["accuracy"] = accuracy_json(scenario);
  document["interval"] = interval_json(effects.interval);
  if (request.given_plan.empty()) {
    document["sent_bytes_per_site"] = scenario::to_json(costmodel::sent_by_class(
        costmodel::resolve(scenario).plan.sent, run.report, costmodel::at_own_pace(scenario.strategy)));
    const Engine brief = request.engine.simulated ? brief_engine(scenario) : request.engine;
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
}

std::string simulate_answer(const SimulateRequest& request, const costmodel::Scenario& scenario,
                            const sim::SimulatedRun& run, const InputEffects& effects) {
  if (request.output.csv()) return csv_header() + '\n' + csv_row(run.report, scenario) + '\n';
  if (!request.output.for_people()) return simulate_json(request, scenario, run, effects);
  return report_text(run.report, scenario, interval_text(effects.interval, scenario),
                     sensitivity_text(effects.sensitivity, run.report.wall_clock_s) +
                         uncertainty_text(effects.uncertainty) + comparable_text(scenario));
}

void write_files(const SimulateRequest& request, const costmodel::Scenario& scenario,
                 const sim::SimulatedRun& run) {
  if (request.plan.wanted()) request.plan.output.write(scenario::plan_json(run.plan, run.executed));
  if (request.trace.wanted())
    request.trace.output.write(scenario::trace_json(run.plan, scenario.platform, run.timeline));
  if (request.links.wanted()) {
    const auto effective = costmodel::platform_of_connections(
        platforms::with_store_as_site(scenario.platform), scenario.network);
    request.links.output.write(scenario::links_csv(run.plan, effective, run.timeline));
  }
}

}  // namespace

void run_simulate(const Arguments& arguments) {
  po::options_description options = simulate_options();
  const auto values = parse(arguments, simulate_help(), options, "scenario");
  if (!values) return;
  const SimulateRequest request = read_request(*values);
  const CalibrationFile calibration = read_calibration(*values);
  const costmodel::Scenario scenario = calibration.stated(read_scenario(*values, calibration.settings()));
  const std::optional<planner::Limits> limits = given_limits(*values, scenario);
  const sim::SimulatedRun run = simulate(request, scenario, read_replicas(*values, request.engine));
  InputEffects effects;
  if (request.given_plan.empty()) {
    effects.sensitivity = read_sensitivity(*values, scenario, request.engine);
    effects.uncertainty =
        find_uncertainty(*values, scenario, calibration, request.engine, run.report.wall_clock_s);
  }
  effects.interval = interval_of(run.report, scenario, effects.uncertainty.inputs);
  // The answer is made before the first file is written, so that a failure leaves no file behind.
  const std::string answer = simulate_answer(request, scenario, run, effects);
  write_files(request, scenario, run);
  request.output.write(answer);
  const std::string broken = limits ? broken_limit(run.report, scenario, *limits) : "";
  if (!broken.empty()) throw LimitsNotMet("the run " + broken + " (--within)");
}

}  // namespace fomoe::commands
