#include "experiments/analysis/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "costmodel/formula/resolved.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

constexpr std::size_t kMostLines = 5;
constexpr double kWorthSaying = 1e-4, kCloseEnough = 0.02;

constexpr std::int64_t kBriefFlows = 10'000;  // for each of some thirty simulations that show a trend

std::string changed_by(double share) { return fmt::format("{:+.3g} %", (share - 1) * 100); }

std::string change_text(double before_s, double after_s) {
  const double change = (after_s / before_s - 1) * 100;
  return std::abs(change) < 0.005 ? "no change" : fmt::format("{:+.2f} %", change);
}

}  // namespace

void add_sensitivity_option(po::options_description& options) {
  options.add_options()(
      "sensitivity", po::value<std::string>()->default_value("closed-form")->value_name("ENGINE"),
      "engine that computes how the wall clock changes if an input is 10 % smaller or "
      "larger: closed-form, or, if this option is not given, the simulator where the closed form "
      "approximates (unless --engine closed-form computes the answer); simulated, with two additional runs "
      "for each input; or "
      "none");
}

namespace {

ShownSensitivity shown(std::string executor, costmodel::Sensitivities all) {
  return {std::move(executor), all.unchanged_s, std::move(all.inputs)};
}

ShownSensitivity simulated_sensitivity(const costmodel::Scenario& scenario, const sim::RunOptions& options) {
  return shown("simulated", costmodel::sensitivity(scenario, [&](const auto& scenarios) {
                 std::vector<double> times_s;
                 for (const costmodel::Speed& speed : simulate_all(scenarios, options))
                   times_s.push_back(speed.wall_clock_s);
                 return times_s;
               }));
}

ShownSensitivity closed_form_sensitivity(const costmodel::Scenario& scenario) {
  return shown("closed-form", costmodel::sensitivity(scenario));
}

}  // namespace

Engine brief_engine(const costmodel::Scenario& scenario) {
  Engine engine;
  const costmodel::Resolved resolved = costmodel::resolve(scenario);
  // Workers at their own pace need dozens of rounds for a mean, which the closed form has at once.
  engine.simulated = costmodel::approximates(resolved) && !resolved.own_pace;
  engine.options.most_flows = kBriefFlows;
  return engine;
}

ShownSensitivity brief_sensitivity(const costmodel::Scenario& scenario) {
  // Thirty simulations of every round would take too long, and the closed form leaves outages out.
  if (scenario.failures && !scenario.failures->outages.empty()) return {};
  const Engine engine = brief_engine(scenario);
  return engine.simulated ? simulated_sensitivity(scenario, engine.options)
                          : closed_form_sensitivity(scenario);
}

ShownSensitivity read_sensitivity(const po::variables_map& values, const costmodel::Scenario& scenario,
                                  const Engine& engine) {
  const std::string name =
      choice("--sensitivity", values["sensitivity"].as<std::string>(), {"closed-form", "simulated", "none"});
  if (name == "none") return {};
  if (engine.simulated && name == "closed-form" && values["sensitivity"].defaulted())
    return brief_sensitivity(scenario);
  return name == "closed-form" ? closed_form_sensitivity(scenario)
                               : simulated_sensitivity(scenario, engine.options);
}

std::string sensitivity_text(const ShownSensitivity& shown, double answer_s) {
  std::vector<Row> rows = {{"wall clock if an input changes", "less", "", "more", ""}};
  for (const costmodel::Sensitivity& input : shown.inputs) {
    if (rows.size() > kMostLines || std::abs(input.change) < kWorthSaying) break;
    rows.push_back({input.input, changed_by(input.less_share) + ":",
                    change_text(shown.wall_clock_s, input.less_s), changed_by(input.more_share) + ":",
                    change_text(shown.wall_clock_s, input.more_s)});
  }
  if (rows.size() == 1) return "";
  rows.front() = {"wall clock if an input changes", "", "", "", ""};
  std::string text = aligned(rows);
  const double off = shown.wall_clock_s / answer_s - 1;
  if (shown.executor == "closed-form" && std::abs(off) > kCloseEnough) {
    text += fmt::format(
        "computed by the closed form, whose wall clock is {} {} the one above, so these changes can have an "
        "error of that size; fomoe simulate --sensitivity simulated uses the simulator\n",
        human_percent(std::abs(off)), off > 0 ? "above" : "below");
  } else {
    text += shown.executor == "closed-form" ? "computed by the closed form\n" : "computed by simulation\n";
  }
  return text + '\n';
}

scenario::Json sensitivity_json(const ShownSensitivity& shown) {
  scenario::Json list = scenario::Json::array();
  for (const costmodel::Sensitivity& input : shown.inputs)
    list.push_back({{"input", input.input},
                    {"executor", shown.executor},
                    {"wall_clock_s", shown.wall_clock_s},
                    {"change", input.change},
                    {"less_factor", input.less_share},
                    {"less_wall_clock_s", input.less_s},
                    {"more_factor", input.more_share},
                    {"more_wall_clock_s", input.more_s}});
  return list;
}

}  // namespace fomoe::commands
