#include "experiments/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "experiments/report/html.hpp"
#include "experiments/report/page_template.hpp"
#include "experiments/report/sections.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::report {

namespace {

std::string title_of(const Results& results) {
  if (results.size() > 1 && results.size() == results.runs.size()) {
    std::vector<Run> runs;
    for (const Run& run : results.runs) runs.push_back(median_of(run));
    const auto fastest = std::min_element(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
      return a.figures.wall_clock_s < b.figures.wall_clock_s;
    });
    // Twice the median error of predicted wall clocks, 1.0 % (experiments/validation/drawn).
    constexpr double kTie = 1.02;
    std::vector<std::string> names = {fastest->name};
    for (const Run& run : runs) {
      if (&run != &*fastest && run.figures.wall_clock_s <= kTie * fastest->figures.wall_clock_s)
        names.push_back(run.name);
    }
    const std::string time = commands::human_time(fastest->figures.wall_clock_s);
    return names.size() == 1
               ? fmt::format("{} is the fastest of {} results: {}", names[0], results.size(), time)
               : fmt::format("{} are the fastest of {} results, within 2 %: {}",
                             scenario::joined(names, " and "), results.size(), time);
  }
  if (results.size() > 1) return fmt::format("fomoe: {} results", results.size());
  if (!results.runs.empty()) return answer_of(results.runs.front());
  if (!results.plans.empty()) return answer_of(results.plans.front());
  if (!results.sweeps.empty()) return answer_of(results.sweeps.front());
  return results.solved.empty() ? answer_of(results.validations.front()) : answer_of(results.solved.front());
}

/// The section of one result. A single result is shown open. If there are several results, their sections
/// follow the comparison and are closed until the reader opens them.
std::string result(const std::string& kind, const std::string& name, const std::string& answer,
                   const std::string& html, bool alone) {
  const std::string headed = heading(2, alone ? kind : kind + ": " + name) + html;
  const std::string content = alone ? headed : folded(name + ": " + answer, headed);
  return "<article>\n" + content + "</article>\n";
}

/// The title of the result's scenario and the name of its file, or that alone.
std::string titled(const Json& scenario, const std::string& file) {
  if (!scenario.is_object() || !scenario.contains("name") || !scenario["name"].is_string()) return file;
  return fmt::format("{} ({})", scenario["name"].get<std::string>(), file);
}

std::string installed_chart_library() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const auto beside = program.parent_path() / "chart.min.js";
  return std::filesystem::exists(beside, ignored) ? beside.string()
                                                  : "/usr/share/javascript/chart.js/chart.min.js";
}

}  // namespace

ChartLibrary read_chart_library(const std::string& given) {
  const std::string path = given.empty() ? installed_chart_library() : given;
  const auto fail = [&](const std::string& got) {
    throw std::runtime_error(
        fmt::format("{}: got {}; expected Chart.js 3 or 4, which draws the charts of the report; for example "
                    "apt-get install libjs-chart.js, or --chart-library FILE",
                    path, got));
  };
  const std::optional<std::string> content = whole_file(path);
  if (!content) fail("no readable file");
  ChartLibrary library;
  library.text = *content;
  std::smatch banner;
  const std::string start = library.text.substr(0, 200);
  if (!std::regex_search(start, banner, std::regex(R"(Chart\.js v([34]\.[0-9.]+))"))) fail("another file");
  library.version = banner[1];
  // This sequence would end the script element early.
  if (library.text.find("</script") != std::string::npos)
    fail("a file with </script>, which cannot be embedded in a page");
  return library;
}

std::string chart_licence(const ChartLibrary& library) {
  return filled(kLicenceHtml, {{"chart_version", escaped(library.version)}});
}

std::string page(const Results& results, const ChartLibrary& library, const std::string& command) {
  const bool alone = results.size() == 1;
  std::string html;
  if (results.runs.size() > 1)
    html += "<article>\n" + heading(2, "Comparison") + comparison_section(results.runs) + "</article>\n";
  for (const Run& run : results.runs)
    html += result(alone ? titled(run.scenario, run.name) : "Result", run.name, answer_of(run),
                   run_section(run), alone);
  for (const Plan& plan : results.plans)
    html += result(alone ? "Plan for " + titled(plan.inputs.scenario, plan.name) : "Plan", plan.name,
                   answer_of(plan), plan_section(plan), alone);
  for (const Sweep& sweep : results.sweeps)
    html += result(alone ? "Sweep of " + titled(sweep.inputs.scenario, sweep.name) : "Sweep", sweep.name,
                   answer_of(sweep), sweep_section(sweep), alone);
  for (const Solved& solved : results.solved)
    html += result(alone ? "Targets for " + titled(solved.inputs.scenario, solved.name) : "Targets",
                   solved.name, answer_of(solved), solved_section(solved), alone);
  for (const Validation& validation : results.validations)
    html += result("Predictions and real runs", validation.name, answer_of(validation),
                   validation_section(validation), alone);
  return filled(kPageHtml, {{"title", escaped(title_of(results))},
                            {"style", kPageCss},
                            {"content", html},
                            {"command", escaped(command)},
                            {"licence", chart_licence(library)},
                            {"chart_library", library.text},
                            {"charts", kChartsJs}});
}

}  // namespace fomoe::report
