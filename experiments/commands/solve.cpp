#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "costmodel/compose/memory_remedy.hpp"
#include "costmodel/compose/warnings.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "experiments/analysis/target.hpp"
#include "experiments/analysis/unknown.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/progress.hpp"
#include "experiments/cli/waiting_cause.hpp"
#include "experiments/planner/search.hpp"
#include "experiments/results/json_values.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/units.hpp"
#include "platforms/each_path.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

using costmodel::RunReport;
using costmodel::Scenario;
using planner::Found;

/// The reports of runs, by value of the key. Each report is computed once.
class Reports {
 public:
  /// `more` is set in all scenarios, besides what the command line says.
  Reports(const po::variables_map& values, const Unknown& unknown, const Engine& engine, std::string more)
      : values_(values), unknown_(unknown), engine_(engine), more_(std::move(more)) {}

  /// Returns nullptr if the scenario is impossible with this value.
  const RunReport* at(double value) {
    const auto [entry, is_new] = known_.try_emplace(value);
    if (!is_new) return entry->second ? &*entry->second : nullptr;
    try {
      entry->second = execute(scenario_of(value), engine_).report;
      ++computed_;
    } catch (const FileError& error) {
      impossible_ = error.what();
    }
    return entry->second ? &*entry->second : nullptr;
  }
  [[nodiscard]] Scenario scenario_of(double value) const {
    if (more_.empty()) return read_scenario(values_, {unknown_.assignment(value)});
    return read_scenario(values_, {more_, unknown_.assignment(value)});
  }
  /// Notes why a report lacks the target's metric, as if the value were impossible.
  void lacks(const Target& target, const RunReport& report) {
    // The first value is the scenario's own: others may lack it for further reasons.
    if (impossible_.empty())
      impossible_ =
          fmt::format("{} is unknown: {}", target.name, report.quality ? report.quality->reason : "");
  }
  [[nodiscard]] std::size_t computed() const { return computed_; }
  /// Whether several values were tried and all gave the same metric.
  [[nodiscard]] bool same_everywhere(double (*metric)(const RunReport&)) const {
    if (computed_ < 2) return false;
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (const auto& [value, report] : known_) {
      if (!report || !std::isfinite(metric(*report))) continue;
      least = std::min(least, metric(*report));
      most = std::max(most, metric(*report));
    }
    return most - least <= 1e-9 * std::abs(most);
  }
  /// The reason why a value is impossible, if there was such a value.
  [[nodiscard]] std::string impossible() const {
    std::string text = impossible_;
    for (std::size_t at = text.find("--set "); at != std::string::npos; at = text.find("--set ", at + 1))
      text.replace(at, 6, "--for ");
    return text;
  }

 private:
  const po::variables_map& values_;
  const Unknown& unknown_;
  Engine engine_;
  std::string more_;
  std::map<double, std::optional<RunReport>> known_;
  std::size_t computed_ = 0;
  std::string impossible_;
};

struct Solution {
  Target target;
  Found found;
  const RunReport* at = nullptr;  // the report at the answer, or at the value that comes closest
  // The report at the neighbour on the other side, 1 % or one whole number away.
  const RunReport* beside = nullptr;
  double beside_value = 0;
  // Note for a key that does not change the metric or that has only one possible value.
  std::string alike = {};
};

/// `domain` is that of the unknown, with the resolution of the search.
Solution solve(const Unknown& unknown, const planner::Domain& domain, const Target& target, Reports& quick,
               Reports& precise) {
  const auto margin_by = [&](Reports& reports) {
    return [&](double value) -> std::optional<double> {
      const RunReport* report = reports.at(value);
      if (report == nullptr) return std::nullopt;
      if (std::isnan(target.metric(*report))) {
        reports.lacks(target, *report);
        return std::nullopt;
      }
      return target.margin(*report);
    };
  };
  Solution solution{target, planner::search(domain, margin_by(quick), margin_by(precise))};
  Found& found = solution.found;
  if (precise.same_everywhere(target.metric)) {
    solution.alike = fmt::format(" {} does not change {} in this scenario.", unknown.name, target.name);
  } else if (precise.computed() == 1 && !quick.impossible().empty()) {
    solution.alike = fmt::format(" No other value is possible in this scenario: {}.", quick.impossible());
  }
  if (found.kind == Found::Kind::every && found.upper_end && found.value < unknown.domain.high &&
      !quick.impossible().empty())
    solution.alike += fmt::format(" Larger values are not possible: {}.", quick.impossible());
  if (found.kind == Found::Kind::none) {
    if (!found.best) throw FileError(quick.impossible());
    solution.at = precise.at(*found.best);
    return solution;
  }
  const bool smallest = found.kind == Found::Kind::smallest;
  if (found.kind != Found::Kind::every) {
    // Simulations of connections are not smooth: the rounded value, or one of the next, reaches the target.
    constexpr int kTries = 8;
    double rounded = unknown.rounded(found.value, smallest);
    for (int i = 0; i < kTries; ++i) {
      const RunReport* report = precise.at(rounded);
      if (report != nullptr && target.margin(*report) >= 0) {
        found.value = rounded;
        break;
      }
      rounded = unknown.rounded(rounded * (smallest ? 1.001 : 0.999), smallest);
    }
    // Nor is the answer one that its neighbour contradicts.
    for (int i = 0; i <= kTries; ++i) {
      solution.beside_value = unknown.whole() && found.value < planner::kManyWhole
                                  ? found.value + (smallest ? -1 : 1)
                                  : found.value * (smallest ? 0.99 : 1.01);
      const bool inside =
          solution.beside_value >= unknown.domain.low && solution.beside_value <= unknown.domain.high;
      solution.beside = inside ? precise.at(solution.beside_value) : nullptr;
      if (solution.beside == nullptr || !(target.margin(*solution.beside) >= 0)) break;
      found.value = unknown.rounded(solution.beside_value, smallest);
      if (precise.at(found.value) == nullptr || !(target.margin(*precise.at(found.value)) >= 0))
        found.value = solution.beside_value;
    }
  }
  solution.at = precise.at(found.value);
  return solution;
}

const char* name_of(Found::Kind kind) {
  switch (kind) {
    case Found::Kind::smallest:
      return "smallest";
    case Found::Kind::largest:
      return "largest";
    case Found::Kind::every:
      return "every";
    case Found::Kind::none:
      return "none";
  }
  return "";
}

/// Describes what a factor on all rates means: the rates of the slowest and the fastest path between sites.
std::string rates_text(const Unknown& unknown, const Scenario& at) {
  if (unknown.name != "platform.rate_factor") return "";
  double least = std::numeric_limits<double>::infinity(), most = 0;
  platforms::each_path(at.platform, [&](int from, int to, const platforms::Path& /*path*/) {
    const double rate = at.platform.route_bytes_per_s(from, to);
    least = std::min(least, rate);
    most = std::max(most, rate);
  });
  if (!(most > 0) || !std::isfinite(most)) return "";
  const auto text = [](double rate) { return fmt::format("{:.4g}", rate * scenario::kBitsPerByte / 1e9); };
  return least == most
             ? fmt::format(" Every path between the sites then has {} Gb/s.", text(least))
             : fmt::format(" The paths between the sites then have {} to {} Gb/s.", text(least), text(most));
}

std::string explained(const Unknown& unknown, const Solution& solution, const Scenario& scenario,
                      const Reports& reports) {
  const Target& target = solution.target;
  const Found& found = solution.found;
  std::string metric = target_amount(target, target.metric(*solution.at), scenario), beside;
  if (solution.beside != nullptr)
    std::tie(metric, beside) =
        target_amounts(target, target.metric(*solution.at), target.metric(*solution.beside), scenario);
  if (found.kind == Found::Kind::none) {
    if (target.name == "loss")  // no link decides a loss
      return fmt::format("no value reaches the target: the closest value tried is {}, with {}.",
                         unknown.text(unknown.rounded(*found.best, true)), metric) +
             solution.alike;
    std::string text =
        !solution.alike.empty()
            ? fmt::format(
                  "no value reaches the target: all values tried have {}. "
                  "The scenario {}.",
                  metric, waiting_text(*solution.at))
            : fmt::format(
                  "no value reaches the target: the closest value tried is {}, with {}. With this "
                  "value the scenario {}.",
                  unknown.text(unknown.rounded(*found.best, true)), metric, waiting_text(*solution.at));
    const Scenario closest = reports.scenario_of(*found.best);
    if (const std::string more = costmodel::more_connections(closest.platform, closest.network);
        !more.empty()) {
      text += " With this value, " + more + '.';
    } else if (solution.at->bottleneck.waits_for == "latency") {
      text += " The cause is latency";
      text += direct_is_faster(scenario)
                  ? ", which a ring incurs in each of its steps: try --set strategy.collective=direct or a "
                    "larger K."
                  : ": try a larger K or sites that are closer to each other.";
    }
    return text + solution.alike;
  }
  std::string text;
  if (found.kind == Found::Kind::every) {
    text = fmt::format("every value tried reaches the target, {} to {}, which gives {}.",
                       found.upper_end ? "up" : "down", unknown.text(found.value), metric);
  } else {
    text = fmt::format("{} ({} value) gives {}", unknown.text(found.value), name_of(found.kind), metric);
    if (solution.beside != nullptr) {
      text +=
          fmt::format("; {} gives {}", unknown.text(unknown.rounded(solution.beside_value, true)), beside);
      if (target.margin(*solution.beside) >= 0)
        text += ", and reaches it too, since simulated connections are not smooth";
    }
    text += '.';
  }
  if (found.missed_again)
    text += fmt::format(" The result is not monotone: the target is missed again at {}.",
                        unknown.text(*found.missed_again));
  if (found.other_end)
    text +=
        fmt::format(" It is reached from {} to {}{}.", unknown.text(std::min(found.value, *found.other_end)),
                    unknown.text(std::max(found.value, *found.other_end)),
                    found.reached_again ? ", and again at " + unknown.text(*found.reached_again) : "");
  const Scenario solved = reports.scenario_of(found.value);
  text += rates_text(unknown, solved) + solution.alike;
  if (const std::string memory = costmodel::memory_problem(solved); !memory.empty())
    text += fmt::format(" However, this configuration cannot run: it {}.", memory);
  return text;
}

scenario::Json json_of(const Unknown& unknown, const Solution& solution) {
  const Found& found = solution.found;
  const bool has_value = found.kind != Found::Kind::none;
  scenario::Json json = {
      {"target", solution.target.name},
      {"target_value", solution.target.value},
      {"answer", name_of(found.kind)},
      {"value", has_value ? scenario::Json(found.value) : scenario::Json(nullptr)},
      {"text", has_value ? scenario::Json(unknown.text(found.value)) : scenario::Json(nullptr)},
      {"monotone", !found.missed_again.has_value()}};
  if (found.other_end) json["other_end"] = *found.other_end;
  if (found.reached_again) json["reached_again"] = *found.reached_again;
  if (found.best) json["closest"] = *found.best;
  if (solution.at != nullptr) json["reached"] = solution.target.metric(*solution.at);
  if (solution.beside != nullptr) {
    json["beside"] = solution.beside_value;
    json["reached_beside"] = solution.target.metric(*solution.beside);
  }
  return json;
}

void end_with_status(const std::vector<Solution>& solutions) {
  if (std::all_of(solutions.begin(), solutions.end(),
                  [](const Solution& one) { return one.found.kind == Found::Kind::none; }))
    throw LimitsNotMet("no value of the key reaches a target");
}

}  // namespace

void run_solve(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()(
      "for", po::value<std::string>()->value_name("KEY"),
      "key to solve for; its value is a count, rate, time, size, share, factor, power or price; required")(
      "target", po::value<std::string>()->value_name("NAME=VALUE"),
      "a lower bound, compute_utilization=95% or tokens_per_s=1e6, or an upper bound, wall_clock=3d, "
      "cost=5000, energy=800 (kWh) or loss=2% (above data-parallel training, by published runs) (default: a "
      "table for 50, 80, 90, 95 and 99 % utilisation)")(
      "output", po::value<std::string>()->default_value("")->value_name("-|FILE.json"),
      "-: JSON on stdout; or a .json file (default: text on stdout)");
  add_scenario_options(options);
  add_engine_options(options);
  const Help help = {
      "solve",
      "SCENARIO.toml --for KEY [--target NAME=VALUE] [options]",
      "Finds the smallest value of a key that reaches a target, or the largest value if "
      "smaller\nvalues are better. The closed form brackets the value, and the chosen engine decides.",
      {"fomoe solve experiments/scenarios/two-sites.toml --for platform.bandwidth",
       "fomoe solve experiments/scenarios/two-sites.toml --for strategy.local_steps --target "
       "compute_utilization=0.95",
       "fomoe solve experiments/scenarios/two-sites.toml --for compute.step_time --target wall_clock=2min",
       "fomoe solve experiments/scenarios/two-sites.toml --for site.site-1.uplink --target "
       "compute_utilization=0.5",
       "fomoe solve experiments/scenarios/four-regions.toml --for prices.gpu_hour --target cost=4000",
       "fomoe solve experiments/scenarios/two-sites.toml --for strategy.local_steps --target loss=2% --set "
       "model.dense_parameters=1e9 --set model.sequence_length=2048 --set workload.tokens=20e9 --set "
       "strategy.method=diloco --set platform.sites=4"}};
  const auto values = parse(arguments, help, options, "scenario");
  if (!values) return;

  const Output output("--output", (*values)["output"].as<std::string>(), {".json"});
  if (values->count("for") == 0)
    throw UsageError("--for: got nothing; expected a key; for example --for platform.bandwidth");
  Engine engine = read_engine(*values);
  engine.options.on_progress = show_simulation();
  const Scenario base = read_scenario(*values);
  scenario::Document document =
      scenario::Document::read((*values)["scenario"].as<std::vector<std::string>>().front(), "scenario", "");
  for (const std::string& assignment : overrides_of(*values)) document.override_key(assignment);
  const Unknown unknown = read_unknown((*values)["for"].as<std::string>(), base, document);
  std::vector<Target> targets;
  if (values->count("target")) {
    targets.push_back(read_target((*values)["target"].as<std::string>(), base));
  } else {
    for (const double share : {0.5, 0.8, 0.9, 0.95, 0.99}) targets.push_back(utilization_target(share));
  }

  Engine formula = engine;
  formula.simulated = false;
  const std::string more = asked_for(targets.front(), base);
  Reports quick(*values, unknown, formula, more), precise(*values, unknown, engine, more);
  std::vector<Solution> solutions;
  planner::Domain domain = unknown.domain;
  domain.rounded = [&](double value) { return unknown.rounded(value, true); };
  // Simulated connections are not smooth: 0.1 % more bandwidth may take longer.
  constexpr double kOfConnections = 1e-2;
  if (engine.simulated && base.network.initial_window_bytes) domain.resolution = kOfConnections;
  for (const Target& target : targets) solutions.push_back(solve(unknown, domain, target, quick, precise));

  const char* executor = engine.simulated ? "simulated" : "closed-form";
  if (!output.for_people()) {
    scenario::Json list = scenario::Json::array();
    for (const Solution& solution : solutions) {
      scenario::Json entry = json_of(unknown, solution);
      entry["why"] = explained(unknown, solution, base, precise);
      list.push_back(entry);
    }
    scenario::Json answer = {{"schema", "fomoe.solve/1"},
                             {"for", unknown.name},
                             {"unit", unknown.si_unit},
                             {"executor", executor},
                             {"answers", list}};
    scenario::add_inputs(answer, base);
    output.write(scenario::to_text(answer));
    return end_with_status(solutions);
  }
  std::string text = fmt::format("values of {} that reach the targets\n", unknown.name);
  if (const std::string missing = left_out(base, engine.simulated, true); !missing.empty())
    text = fmt::format("These values leave out {}; --engine simulated includes them.\n", missing) + text;
  if (base.failures && base.failures->at_random())
    text = "Wall clocks and costs are those of the median run with failures.\n" + text;
  for (const Solution& solution : solutions) {
    text += fmt::format("  {} {} {}: {}\n", solution.target.name, solution.target.at_least ? "≥" : "≤",
                        target_amount(solution.target, solution.target.value, base),
                        explained(unknown, solution, base, precise));
  }
  text += fmt::format("Executor: {} ({} runs); the closed form bracketed the values\n", executor,
                      precise.computed());
  output.write(text);
  end_with_status(solutions);
}

}  // namespace fomoe::commands
