#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "costmodel/compose/memory_remedy.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/value/goodput.hpp"
#include "experiments/analysis/envelope.hpp"
#include "experiments/analysis/interval.hpp"
#include "experiments/analysis/limits.hpp"
#include "experiments/analysis/loss_contrast.hpp"
#include "experiments/analysis/sensitivity.hpp"
#include "experiments/analysis/verdict.hpp"
#include "experiments/cli/answer.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/progress.hpp"
#include "experiments/cli/waiting_cause.hpp"
#include "experiments/output/report_text.hpp"
#include "experiments/report/readers/names.hpp"
#include "experiments/results/cost_json.hpp"
#include "experiments/results/json_values.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/plot.hpp"
#include "experiments/text/split.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

/// Splits at spaces; those inside quotes or brackets belong to a value.
std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> found = scenario::split_outside_quotes(
      text, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
  std::erase(found, "");
  return found;
}

/// The method, and those overrides that no column of the table shows.
std::string short_name(const costmodel::Scenario& scenario, const std::vector<std::string>& overrides) {
  std::string name = scenario.strategy.method->name;
  for (const std::string& override_text : overrides) {
    const std::string key = override_text.substr(0, override_text.find('='));
    if (key == "strategy.method" || key == "strategy.local_steps" || key == "strategy.expert_overlap")
      continue;
    name += ' ' + override_text.substr(override_text.find('.') + 1);
  }
  return name;
}

std::string table(const std::vector<Case>& cases) {
  std::vector<Row> rows = {{"case", "K", "O_e", "wall clock", "compute", "exposed", "idle", "MB/site/round",
                            "utilisation", "busiest link"}};
  // These columns appear only if some scenario has values for them.
  const auto any = [&](const auto& text_of) {
    return std::any_of(cases.begin(), cases.end(),
                       [&](const Case& one) { return !text_of(one.report).empty(); });
  };
  const bool costs = any(money_text), perplexities = any(perplexity_text);
  if (costs) rows.front().insert(rows.front().begin() + 4, "cost");
  if (perplexities) rows.front().insert(rows.front().begin() + 4, "perplexity");
  for (const Case& one : cases) {
    const costmodel::RunReport& report = one.report;
    const auto rounds = static_cast<double>(report.round.count);
    rows.push_back({one.name, std::to_string(one.steps_per_round()), std::to_string(one.expert_overlap),
                    human_time(report.wall_clock_s), human_time(report.round.compute_s * rounds),
                    human_time(report.round.exposed_communication_s * rounds),
                    human_time(report.round.idle_s * rounds),
                    fmt::format("{:.4g}", report.bytes_sent_per_site_per_round / 1e6),
                    human_percent(report.compute_utilization), report.bottleneck.link});
    Row& row = rows.back();
    if (costs) row.insert(row.begin() + 4, money_text(report));
    if (perplexities) row.insert(row.begin() + 4, perplexity_text(report));
  }
  return aligned(rows);
}

/// With [failures]: the cases with the time and the cost of their median run.
std::vector<Case> median_runs(std::vector<Case> cases) {
  for (Case& one : cases) {
    if (!one.report.goodput) continue;
    const costmodel::RunAmounts median = costmodel::amounts_of(one.report);
    one.report.wall_clock_s = median.wall_clock_s;
    if (median.cost) one.report.cost->cost_total = *median.cost;
  }
  return cases;
}

std::string note_on_failures(const std::vector<Case>& cases) {
  if (std::none_of(cases.begin(), cases.end(), [](const Case& one) { return one.report.goodput; })) return "";
  return "Wall clocks and costs are those of the median run with failures; the other columns leave failures "
         "out.\n";
}

/// What a case trains, as text.
std::string question_of(const costmodel::Scenario& scenario) {
  const scenario::Json json = scenario::to_json(scenario);
  return json["model"].dump() + json["workload"].dump();
}

/// What the engine leaves out of the scenario of each case, in one line for each kind.
std::string note_on_engine(const std::vector<costmodel::Scenario>& scenarios, const Engine& engine) {
  std::set<std::string> parts;
  for (const costmodel::Scenario& scenario : scenarios) {
    if (const std::string missing = left_out(scenario, engine.simulated, true); !missing.empty())
      parts.insert(missing);
  }
  std::string text;
  for (const std::string& missing : parts)
    text += fmt::format("The closed form leaves out {}; use --engine simulated.\n", missing);
  return text;
}

/// A bar for each case, with the settings of the case as its label.
std::string plot_text(const std::vector<Case>& cases, const std::vector<std::string>& overrides) {
  std::vector<TimeBar> bars;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const costmodel::RunReport& report = cases[i].report;
    bars.push_back({report::short_case(overrides[i]), report.wall_clock_s, report.round.compute_s,
                    report.round.exposed_communication_s, report.round.idle_s,
                    report.memory_problem.empty() ? "" : "does not fit into GPU memory"});
  }
  return time_bars("wall clock", bars, plot_width());
}

/// The inputs that the wall clock of the fastest case depends on most. With failures, the fastest is that
/// whose median run ends first, and the inputs are those of its run without failures.
std::string of_the_fastest(const std::vector<Case>& cases, const std::vector<Case>& median,
                           const std::vector<costmodel::Scenario>& scenarios) {
  const auto fastest =
      static_cast<std::size_t>(std::min_element(median.begin(), median.end(),
                                                [](const Case& a, const Case& b) {
                                                  return a.report.wall_clock_s < b.report.wall_clock_s;
                                                }) -
                               median.begin());
  const std::string text =
      sensitivity_text(brief_sensitivity(scenarios[fastest]), cases[fastest].report.wall_clock_s);
  return text.empty() ? "" : "\nFor the fastest case: " + text;
}

/// A line for each case that breaks a limit.
std::string outside_limits(const std::vector<std::string>& texts, const std::vector<std::string>& broken) {
  std::string text;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!broken[i].empty())
      text += fmt::format("Outside --within: \"{}\" {}.\n", report::short_case(texts[i]), broken[i]);
  }
  return text;
}

}  // namespace

void run_compare(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("case", po::value<std::vector<std::string>>()->value_name("\"KEY=VALUE …\""),
                        "overrides of one variant, separated by spaces; required, once for each variant "
                        "(\"\" is the unchanged scenario)");
  add_scenario_options(options);
  add_engine_options(options);
  add_limits_option(options);
  options.add_options()("output", po::value<std::string>()->default_value("")->value_name("-|FILE"),
                        "-: JSON on stdout; or a .json or .csv file (default: a table on stdout)")(
      "plot", po::bool_switch(), "also draw the wall clock of each case as a bar on stdout");
  const Help help = {
      "compare",
      "SCENARIO.toml --case \"KEY=VALUE …\" --case … [options]",
      "Simulates variants of a scenario and compares them in one table. Times are totals over the run and "
      "means over the sites.",
      {"fomoe compare experiments/scenarios/two-sites.toml --case strategy.method=ddp --case "
       "\"strategy.method=diloco strategy.local_steps=32\" --case \"strategy.local_steps=32 "
       "strategy.expert_overlap=1\"",
       "fomoe compare experiments/scenarios/four-regions.toml --case strategy.method=ddp --case \"\" "
       "--plot"}};
  const auto values = parse(arguments, help, options, "scenario");
  if (!values) return;
  if (values->count("case") == 0) {
    throw UsageError("--case: got none; expected at least one; for example --case strategy.method=ddp");
  }
  const Output output("--output", (*values)["output"].as<std::string>(), {".json", ".csv"});
  const bool plot = (*values)["plot"].as<bool>();
  if (plot) refuse_plot_beside_json((*values)["output"]);
  Engine engine = read_engine(*values);
  engine.options.on_progress = show_simulation();

  // Read all cases before running the first one: a mistake in the last case then costs no simulation time.
  const auto texts = (*values)["case"].as<std::vector<std::string>>();
  std::vector<Case> cases;
  std::vector<costmodel::Scenario> scenarios;
  std::vector<std::optional<planner::Limits>> limits;
  for (const std::string& text : texts) {
    scenarios.push_back(read_scenario(*values, words(text)));
    limits.push_back(given_limits(*values, scenarios.back()));
    cases.push_back({short_name(scenarios.back(), words(text)),
                     costmodel::effective_overlap(scenarios.back()), direct_is_faster(scenarios.back()),
                     scenarios.back().strategy.local_steps, question_of(scenarios.back())});
  }
  std::vector<std::string> broken;  // by case: the first limit that it breaks
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].report = execute(scenarios[i], engine).report;
    broken.push_back(limits[i] ? broken_limit(cases[i].report, scenarios[i], *limits[i]) : "");
  }

  const std::vector<Case> median = median_runs(cases);
  const std::string drawn = plot ? plot_text(median, texts) : "";
  std::string answer;
  if (output.for_people()) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const std::string memory = costmodel::memory_problem(scenarios[i]);
      if (!memory.empty()) answer += fmt::format("{} cannot run as configured: it {}.\n", texts[i], memory);
    }
    const std::string losses = contrast_table(cases);
    answer += (answer.empty() ? "" : "\n") + table(median) + note_on_failures(cases) +
              note_on_engine(scenarios, engine) + '\n' + losses + (losses.empty() ? "" : "\n") + drawn +
              (plot ? "\n" : "") + verdict(median) + '\n' + outside_limits(texts, broken) +
              of_the_fastest(cases, median, scenarios);
  } else if (output.csv()) {
    answer = "case," + csv_header() + '\n';
    for (std::size_t i = 0; i < cases.size(); ++i) {
      answer += csv_cell(texts[i]) + ',' + csv_row(cases[i].report, scenarios[i]) + '\n';
    }
  } else {
    scenario::Json list = scenario::Json::array();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      scenario::Json report = scenario::to_json(cases[i].report);
      report["sensitivity"] = sensitivity_json(brief_sensitivity(scenarios[i]));
      report["validation_envelope"] = outside_of_validation(cases[i].report, scenarios[i]);
      report["accuracy"] = accuracy_json(scenarios[i]);
      report["interval"] =
          interval_json(interval_of(cases[i].report, scenarios[i],
                                    costmodel::known_spread(scenarios[i], cases[i].report.wall_clock_s,
                                                            cases[i].report.executor == "simulated")));
      report["scenario"] = scenario::to_json(scenarios[i]);
      const std::string& problem = cases[i].report.memory_problem;
      const bool known = costmodel::fullest_gpu(costmodel::counts_of(scenarios[i])).available > 0;
      list.push_back({{"case", texts[i]},
                      {"fits", known ? scenario::Json(problem.empty()) : scenario::Json()},
                      {"problem", problem},
                      {"broken_limit", broken[i]},
                      {"report", report}});
      if (const auto contrast = loss_contrast(cases.front().report, cases[i].report))
        list.back()["loss_against_first_case"] = scenario::loss_json(*contrast);
    }
    answer =
        scenario::to_text({{"schema", "fomoe.compare/1"}, {"cases", list}, {"verdict", verdict(median)}});
  }
  output.write(answer);
  if (!output.for_people()) scenario::write_answer(drawn);
  if (std::none_of(broken.begin(), broken.end(), [](const std::string& one) { return one.empty(); }))
    throw LimitsNotMet("no case meets the limits of --within");
}

}  // namespace fomoe::commands
