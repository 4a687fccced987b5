#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/report/page.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

void run_report(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("output", po::value<std::string>()->default_value("")->value_name("-|FILE.html"),
                        "file for the page, or - for stdout; required")(
      "chart-library", po::value<std::string>()->default_value("")->value_name("FILE.js"),
      "file with Chart.js 3 or 4, which is copied into the page (default: that of the wheel, or of Debian's "
      "libjs-chart.js)");
  const Help help = {
      "report",
      "RESULT.json… --output report.html [options]",
      "Shows results on one page that needs no network: the answer, the timeline of a round, bytes by "
      "class,\nsensitivity, faster and slower links, the scenario and the origin of its numbers. Several "
      "results are\ncompared. A plan is shown with its frontier, a sweep with its curves, a validation with "
      "predicted over\nmeasured times. A result is the JSON output of `fomoe simulate`, `compare`, `plan`, "
      "`sweep`, `solve`,\n`validate`, `fomoe-train run` or `fomoe-wan run`.",
      {"fomoe simulate experiments/scenarios/two-sites.toml --output run.json && fomoe report run.json "
       "--output report.html",
       "fomoe plan experiments/scenarios/two-sites.toml --output plan.json && fomoe report run.json "
       "plan.json --output report.html",
       "fomoe validate experiments/validation/runs/*.json --output errors.json && fomoe report errors.json "
       "--output report.html"}};
  const auto values = parse(arguments, help, options, "result", Positionals::several);
  if (!values) return;
  const std::string path = (*values)["output"].as<std::string>();
  if (path.empty())
    throw UsageError(
        "--output: got nothing; expected - or a file that ends in .html; for example --output report.html");
  const Output output("--output", path, {".html"});
  const auto& paths = (*values)["result"].as<std::vector<std::string>>();
  const report::Results results = report::read_results(paths);
  const report::ChartLibrary library =
      report::read_chart_library((*values)["chart-library"].as<std::string>());
  std::string command = "fomoe report";
  for (const std::string& result : paths) command += ' ' + result;
  output.write(report::page(results, library, command + " --output " + path));
}

}  // namespace fomoe::commands
